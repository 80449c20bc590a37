"""The runnable blocks of a document: those whose fence is `sh run` or `python run`."""

import re
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```(sh|python) run\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block of code in a document."""

    language: str
    text: str


def blocks(document: Path) -> list[Block]:
    """All runnable blocks, in order."""
    return [Block(language, text) for language, text in BLOCK.findall(document.read_text())]


def script(document: Path) -> str:
    """All blocks as one shell script, as a reader would type them one after the other."""
    parts = [b.text if b.language == "sh" else f"python - <<'END'\n{b.text}END\n" for b in blocks(document)]
    return "set -euxo pipefail\n" + "\n".join(parts)
