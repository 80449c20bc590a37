"""Every module of a command is a command."""

import importlib
from pathlib import Path

from hansa.cli import main

FOLDER = Path(main.__file__).parent
# Parts of other commands have the same function.
PARTS = {
    *("cluster_flags", "feature_gates", "log_flags", "loss_flags", "unused_flags", "tenant_flags", "reach_flags"),
    *("question_flags", "slice_flags"),
}


def test_every_command_is_known():
    modules = {path.stem for path in FOLDER.glob("*.py")} | {"demo"}
    commands = {name for name in modules if hasattr(importlib.import_module(f"hansa.cli.{name}"), "add_to")}
    assert commands - PARTS == {name.replace("-", "_") for name in main.COMMANDS}
