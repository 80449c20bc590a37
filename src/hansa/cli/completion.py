"""`hansa completion`: prints the script by which a shell completes our commands.

The script runs the command itself at each TAB (argcomplete), so that it also completes contexts, and never is outdated.
"""

import argparse
from typing import Any

PROGRAMS = ("hansa", "kubemcsa", "kubectl-hansa", "kubectl-vc")
EXAMPLES = """\
examples:
  source <(hansa completion bash)                                   # also in ~/.bashrc
  hansa completion zsh > "${fpath[1]}/_hansa"
  hansa completion fish > ~/.config/fish/completions/hansa.fish

"kubectl hansa" and "kubectl vc" are completed by kubectl itself, if kubectl_complete-hansa and kubectl_complete-vc are
on the PATH; they are installed beside hansa.
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "completion",
        help="print the completion script of a shell",
        description="Prints a script that completes commands, flags, contexts and files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="the shell")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode  # noqa: PLC0415 - it is used by this command only

    print(shellcode([*PROGRAMS], shell=arguments.shell))
    return 0
