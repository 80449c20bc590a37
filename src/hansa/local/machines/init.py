"""The init process of a real node: builds the root file system from a plan, then starts and restarts the services.

It runs as a program of its own, started by the path of this file, and imports only the standard library. `node` writes
the plan.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x20000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 0x1, 0x20, 0x1000, 0x4000, 0x40000, 0x100000
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1

# Folders of the machine that a node sees read-only. Everything that a node writes goes to its own root.
SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc")
RESTART_SECONDS = 1.0
READY_SECONDS = 60.0
# Killed processes end within milliseconds.
CLEAR_SECONDS = 5.0
PAUSE_SECONDS = 0.02


class Service:
    """A program that is restarted when it ends."""

    def __init__(self, argv: Sequence[str], log: int, env: Mapping[str, str]) -> None:
        self.argv, self.log, self.env = argv, log, env
        self.pid = 0
        self.due = 0.0

    def start(self) -> None:
        """Start the program with its output in its log."""
        self.pid = spawn(self.argv, self.log, self.env)

    def ended(self) -> None:
        """Record that it has ended and schedule its restart."""
        print_line(f"{Path(self.argv[0]).name} has ended; restarting it")
        self.pid, self.due = 0, time.monotonic() + RESTART_SECONDS


def main() -> None:
    """Start the node and wait outside it: when this process ends, the kernel ends all processes of the node."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    for group in plan["groups"]:
        clear(Path(group))
    call("unshare", CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID)
    alive, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(held)
        run_as_init(plan, alive)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGKILL))
    # The kernel reports the end of process 1 only after all others of its namespace have ended.
    sys.exit(1 if os.waitpid(pid, 0)[1] else 0)


def clear(group: Path) -> None:
    """Remove control groups of pods from before a restart: a kubelet takes seconds to clean up each."""
    deadline = time.monotonic() + CLEAR_SECONDS
    for path, _, _ in os.walk(group, topdown=False):
        while Path(path) != group and time.monotonic() < deadline:
            try:
                Path(path).rmdir()
                break
            except OSError:
                time.sleep(PAUSE_SECONDS)


def run_as_init(plan: Mapping[str, Any], alive: int) -> NoReturn:
    """Run as process 1 of the node; never returns."""
    try:
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
        if select.select([alive], [], [], 0)[0]:
            raise OSError("the outer process has ended")
        socket.sethostname(plan["hostname"])
        # Log files are outside the node's root, so they are opened before the root is changed.
        append = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        logs = {name: os.open(path, append, 0o600) for name, path in plan["logs"].items()}
        build_root(plan)
        run(plan, logs)
    except OSError as error:
        print_line(f"cannot start the node: {error}")
    os._exit(1)


def build_root(plan: Mapping[str, Any]) -> None:
    """Build the node's root file system, in which the machine's folders are read-only, and change into it."""
    mount("", "/", flags=MS_REC | MS_PRIVATE)
    root = Path(plan["root"])
    mount(root, root, flags=MS_BIND)
    for name in SYSTEM:
        add_system(Path("/", name), root / name)
    for source, target in plan["binds"]:
        bind_read_only(Path(source), root / target.lstrip("/"))
    for name in ("dev", "proc", "sys", "run", "tmp", "root", "var/log", "hansa/proc"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    mount("/dev", root / "dev", flags=MS_BIND | MS_REC)
    mount("proc", root / "proc", kind="proc")
    # A pod with a user namespace may mount /proc only if a /proc without bind mounts over it is visible.
    mount("proc", root / "hansa/proc", kind="proc")
    mount("sysfs", root / "sys", kind="sysfs")
    mount("/sys/fs/cgroup", root / "sys/fs/cgroup", flags=MS_BIND | MS_REC)
    mount("tmpfs", root / "run", kind="tmpfs", data="mode=755")
    os.chdir(root)
    call("pivot_root", b".", b".")
    call("umount2", b".", MNT_DETACH)
    os.chdir("/")
    mount("", "/", flags=MS_REC | MS_SHARED)
    for number, (path, value) in enumerate(plan["shadows"].items()):
        shadow = Path(f"/run/shadow-{number}")
        shadow.write_text(value)
        mount(shadow, path, flags=MS_BIND)


def add_system(source: Path, target: Path) -> None:
    """Bind a folder of the machine into the node, or copy it if it is a symbolic link."""
    if source.is_symlink():
        target.unlink(missing_ok=True)
        target.symlink_to(source.readlink())
    elif source.is_dir():
        bind_read_only(source, target)


def bind_read_only(source: Path, target: Path) -> None:
    """Bind a file or folder of the machine read-only into the node."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    mount(source, target, flags=MS_BIND | MS_REC)
    mount("", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)


def run(plan: Mapping[str, Any], logs: Mapping[str, int]) -> NoReturn:
    """Start the runtime, import the images, start the services, and restart whatever ends."""
    # SIGCHLD is blocked here and read by sigtimedwait; `spawn` unblocks it for children.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    services = {name: Service(argv, logs[name], plan["env"]) for name, argv in plan["services"].items()}
    for folder in plan["forgotten"]:
        shutil.rmtree(folder, ignore_errors=True)
    runtime = services[plan["runtime"]]
    runtime.start()
    wait_for(Path(plan["socket"]), runtime)
    for argv in plan["imports"]:
        if os.waitpid(spawn(argv, runtime.log, plan["env"]), 0)[1] != 0:
            raise OSError(f'"{" ".join(argv)}" failed; see the log of {plan["runtime"]}')
    while True:
        now = time.monotonic()
        waiting = [service for service in services.values() if not service.pid]
        for service in waiting:
            if service.due <= now:
                service.start()
        signal.sigtimedwait([signal.SIGCHLD], RESTART_SECONDS if waiting else READY_SECONDS)
        reap(services)


def reap(services: Mapping[str, Service]) -> None:
    """Wait for all children that have ended, including orphans of the node."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        for service in services.values():
            if service.pid == pid:
                service.ended()


def wait_for(path: Path, runtime: Service) -> None:
    """Wait until the runtime answers on its socket."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and os.waitpid(runtime.pid, os.WNOHANG)[0] == 0:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                return
        time.sleep(PAUSE_SECONDS)
    raise OSError(f"{runtime.argv[0]} does not answer on {path}; see its log")


def spawn(argv: Sequence[str], log: int, env: Mapping[str, str]) -> int:
    """Start a program with its output in a log."""
    actions = [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    return os.posix_spawn(argv[0], list(argv), env, file_actions=actions, setsid=True, setsigmask=[])


def mount(source: str | Path, target: str | Path, *, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount; an error names source and target."""
    try:
        call("mount", os.fsencode(source), os.fsencode(target), kind.encode(), flags, data.encode())
    except OSError as error:
        raise OSError(error.errno, f"cannot mount {source or kind} on {target}: {error.strerror}") from error


def call(name: str, *arguments: bytes | int) -> None:
    """Call a function of the C library; a failure is raised with its errno."""
    function = ctypes.CDLL(None, use_errno=True)[name]
    converted = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments]
    if function(*converted) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def print_line(message: str) -> None:
    """Print a line into the node's log."""
    print(message, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
