"""The package works as an installed wheel, without its source tree."""

import asyncio
import os
import sys
import zipfile
from pathlib import Path

from leftovers import owned_folder

ROOT = Path(__file__).parents[3]


async def run(*argv, cwd, **env):
    started = await asyncio.create_subprocess_exec(
        *map(str, argv),
        cwd=cwd,
        env={**os.environ, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await started.communicate()
    assert started.returncode == 0, output.decode()
    return output.decode()


async def test_a_cluster_starts_from_an_installed_wheel(tmp_path):
    await run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=ROOT)
    [wheel] = tmp_path.glob("*.whl")
    installed = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    modules = {path.parent.name for path in installed.glob("hansa/programs/binaries/go/*/go.mod")}
    assert modules == {"kubernetes", "etcd", "kwok", "coredns", "helm", "kube-score", "metrics-server", "pause"}
    definitions = {path.stem for path in installed.glob("hansa/tenancy/crds/*.yaml")}
    assert definitions == {"virtualclusters", "clusterversions"}
    with owned_folder() as folder:
        env = {"PYTHONPATH": str(installed), "HANSA_STATE": str(folder / "state")}
        hansa = (sys.executable, "-m", "hansa.cli.main", "local")
        where = await run(sys.executable, "-c", "import hansa; print(hansa.__file__)", cwd=folder, **env)
        assert Path(where.strip()).is_relative_to(installed)
        assert "a is ready" in await run(*hansa, "up", "a", "--nodes", "1", "--etcd-fast", cwd=folder, **env)
        assert await run(*hansa, "down", cwd=folder, **env) == "a is gone\n"
