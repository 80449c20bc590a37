"""docs/architecture.md names files that exist, and every folder of the source."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "hansa"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
NAMED = sorted({name for name in re.findall(r"`([\w./-]+)`", PAGE) if "/" in name})


def test_the_page_names_many_files():
    assert len(NAMED) > 50


def test_every_file_and_folder_that_the_page_names_exists():
    missing = [name for name in NAMED if not (SOURCE / name).exists() and not (ROOT / name).exists()]
    # `process/` and `pod/` are named in the row of their parent folder.
    assert [name for name in missing if not list(SOURCE.rglob(name.rstrip("/")))] == []


def test_every_folder_with_modules_is_named():
    folders = {path.parent.relative_to(SOURCE) for path in SOURCE.rglob("*.py")} - {Path()}
    named = {Path(name) for name in NAMED}
    unnamed = {folder for folder in folders if folder not in named and folder.name not in {"process", "pod"}}
    assert sorted(map(str, unnamed - {Path("tenancy/operator/cluster_versions")})) == []
