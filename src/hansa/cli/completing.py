"""Answers a shell, or kubectl, that asks how a command line goes on. Nothing is read from a cluster."""

import argparse
import contextlib
import io
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import yaml

VARIABLE = "_ARGCOMPLETE"  # set by the shell's script
NO_FILES = 4  # kubectl's directive ShellCompDirectiveNoFileComp
DEFAULT = 0  # files, if nothing else fits


def answer(parser: argparse.ArgumentParser) -> None:
    """Print completions and exit, if a shell asks for them; otherwise return."""
    if VARIABLE in os.environ:
        import argcomplete  # noqa: PLC0415 - it is needed at TAB only

        argcomplete.autocomplete(parser, always_complete_options=False)


def words() -> list[str]:
    """The words that were typed before the cursor, if a shell asks; without the program, and without the last word."""
    if VARIABLE not in os.environ:
        return []
    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT", "0") or 0)]
    try:
        return shlex.split(line)[1:] if line.endswith(" ") else shlex.split(line)[1:-1]
    except ValueError:  # an open quote
        return []


def with_contexts(action: argparse.Action) -> None:
    """Complete the value of a flag with the contexts of the kubeconfig."""
    action.completer = contexts  # type: ignore[attr-defined]


def contexts(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The contexts of --kubeconfig, or of the files that kubectl reads."""
    named = os.environ.get("KUBECONFIG", "")
    usual = [Path(one) for one in named.split(os.pathsep) if one] or [Path.home() / ".kube" / "config"]
    found: list[str] = []
    for path in [given] if (given := getattr(parsed_args, "kubeconfig", None)) else usual:
        try:
            config = yaml.safe_load(path.read_text())
            found += [str(one["name"]) for one in config.get("contexts") or ()]
        except (OSError, ValueError, yaml.YAMLError, AttributeError, TypeError, KeyError):
            continue  # completion never shows an error
    return found


class _Done(Exception):
    """All completions were written."""


def for_kubectl(program: str, parser: Callable[[], argparse.ArgumentParser], argv: Sequence[str]) -> int:
    """Print completions as kubectl reads them: one per line, and a directive."""
    import argcomplete  # noqa: PLC0415 - it is needed at TAB only

    line = " ".join([program, *map(shlex.quote, argv[:-1]), argv[-1] if argv else ""])
    variables = {VARIABLE: "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    os.environ.update(variables)
    out = io.StringIO()

    def end(_code: int = 0) -> NoReturn:
        raise _Done

    with contextlib.suppress(_Done):
        # Without any completion of ours, kubectl completes files.
        nothing = argcomplete.completers.ChoicesCompleter({})
        argcomplete.autocomplete(parser(), exit_method=end, output_stream=out, default_completer=nothing)
    found = [one.rstrip() for one in out.getvalue().split("\n") if one.strip()]
    print(*found, f":{NO_FILES if found else DEFAULT}", sep="\n")
    return 0


def kubectl_hansa() -> int:
    """The command kubectl_complete-hansa."""
    from hansa.cli import main  # noqa: PLC0415 - main imports this module

    return for_kubectl("hansa", lambda: main.parser(words()), sys.argv[1:])


def kubectl_vc() -> int:
    """The command kubectl_complete-vc."""
    from hansa.cli.kubectl_vc import main  # noqa: PLC0415 - main imports this module

    return for_kubectl("kubectl-vc", main.parser, sys.argv[1:])
