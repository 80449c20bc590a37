"""The commands in the documents run."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

import documents
from hansa.programs import process
from leftovers import owned_folder

ROOT = Path(__file__).parents[2]
RUNNABLE = [path for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))] if documents.blocks(path)]


@pytest.mark.timeout(600)  # whole systems of several clusters, also on a busy machine
@pytest.mark.parametrize("document", RUNNABLE, ids=lambda path: str(path.relative_to(ROOT)))
async def test_a_document_can_be_followed(document, kubectl):
    with owned_folder() as folder:
        (folder / ".venv").symlink_to(Path(sys.prefix))
        env = {
            **os.environ,
            "HANSA_STATE": str(folder / "state"),
            "PATH": f"{Path(sys.executable).parent}:{kubectl.parent}:{os.environ['PATH']}",
        }
        shell = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            documents.script(document),
            cwd=folder,
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await shell.communicate()
        assert shell.returncode == 0, output.decode()
        assert process.running(folder / "state") == {}
