"""Completion at TAB, in a real bash and through the real kubectl."""

import asyncio
import contextlib
import os
import pty
import sysconfig

import pytest
import yaml

from command_runs import hansa
from eventually import eventually

KILL_LINE = "\x15"  # Ctrl-U
SCRIPTS = sysconfig.get_path("scripts")


@pytest.fixture
def environment(tmp_path, kubectl):
    """The environment of a shell, with a kubeconfig of two contexts."""
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("hamburg", "lubeck")]
    (tmp_path / "config").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "contexts": contexts}))
    return {
        "PATH": os.pathsep.join([SCRIPTS, str(kubectl.parent), os.environ["PATH"]]),
        "HOME": str(tmp_path),
        "KUBECONFIG": str(tmp_path / "config"),
        "TERM": "dumb",
        "PS1": "$ ",
    }


class Bash:
    """An interactive bash."""

    def __init__(self, master):
        self._master = master
        self.shown = ""

    async def type(self, text, *shows):
        """Type characters, and wait until the terminal shows these texts."""
        self.shown = ""
        os.write(self._master, text.encode())

        async def look():
            with contextlib.suppress(OSError):
                self.shown += os.read(self._master, 2**16).decode()
            assert all(one in self.shown for one in shows), self.shown
            return True

        await eventually(look)


@pytest.fixture
async def bash(environment, tmp_path):
    """A bash that has read the completion script."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    process = await asyncio.create_subprocess_exec(
        *("bash", "--norc", "--noprofile", "-i"),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        cwd=tmp_path,
        start_new_session=True,
    )
    os.close(slave)
    shell = Bash(master)
    await shell.type("bind 'set bell-style none'; source <(hansa completion bash); echo re''ady\n", "ready")
    yield shell
    process.kill()
    await process.wait()
    os.close(master)


TYPED = {
    "hansa stat\t": "hansa status ",
    "hansa status --cont\t": "--context ",
    "hansa status --context ham\t": "hamburg ",
    "hansa join lu\t": "lubeck ",
    "hansa vc-manager --provisioner stat\t": "statefulset ",
    "hansa local do\t": "down ",
    "hansa status --kubeconfig con\t": "config ",
    "kubectl-vc up\t": "upgrade ",
    "kubectl-hansa doc\t": "doctor ",
}


async def test_bash_completes_commands_flags_contexts_and_files(bash):
    for typed, shown in TYPED.items():
        await bash.type(f"{KILL_LINE}{typed}", shown)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("hansa", "sta"), ["status"]),
        (("hansa", "status", "--context", ""), ["hamburg", "lubeck"]),
        (("hansa", "status", "-o", ""), ["json", "text"]),
        (("vc", "ex"), ["exec"]),
    ],
)
async def test_kubectl_completes_our_plugins(environment, kubectl, words, wanted):
    process = await asyncio.create_subprocess_exec(
        *(str(kubectl), "__complete", *words),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    *found, directive = out.decode().split()
    assert (sorted(found), directive) == (wanted, ":4"), err


async def test_kubectl_runs_the_plugin(environment, kubectl):
    process = await asyncio.create_subprocess_exec(
        *(str(kubectl), "hansa", "status", "--context", "bergen"), env=environment, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 1
    assert 'there is no context "bergen"' in out.decode()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_there_is_a_script_for_each_shell(shell):
    ran = await hansa("completion", shell)
    assert ran.code == 0
    assert "kubectl-vc" in ran.out
