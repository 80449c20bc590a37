"""Control groups of both versions, as a machine shows them."""

from pathlib import Path

from hansa.local.machines import cgroups
from hansa.local.machines.cgroups import Hierarchy

OLD = """\
30 23 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
"""


def test_hierarchies_of_the_first_version_are_read_with_their_controllers() -> None:
    cpu, systemd = cgroups.hierarchies(OLD)
    assert (cpu.path, cpu.is_unified) == (Path("/sys/fs/cgroup/cpu,cpuacct"), False)
    assert {"cpu", "cpuacct"} <= cpu.controllers
    assert "name=systemd" in systemd.controllers


def test_a_cgroup2_hierarchy_lists_its_own_controllers(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    [unified] = cgroups.hierarchies(f"41 31 0:38 / {tmp_path} rw shared:4 - cgroup2 cgroup2 rw\n")
    assert unified == Hierarchy(tmp_path, True, frozenset({"cpuset", "cpu", "io", "memory", "pids"}))


def test_a_group_of_the_second_version_hands_its_controllers_down(tmp_path: Path) -> None:
    # Ordinary files stand for the kernel's: it makes them with the folder.
    controllers = frozenset({"cpu", "memory", "rdma"})
    (tmp_path / "node").mkdir()
    (tmp_path / "cgroup.subtree_control").write_text("cpu")
    (tmp_path / "node" / "cgroup.subtree_control").write_text("")
    cgroups.ensure("node", [Hierarchy(tmp_path, True, controllers)])
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory"
    assert (tmp_path / "node" / "cgroup.subtree_control").read_text() == "+cpu +memory"


def test_a_group_of_the_first_version_gets_processors_and_memory(tmp_path: Path) -> None:
    (tmp_path / "cpuset.cpus").write_text("0-1\n")
    (tmp_path / "cpuset.mems").write_text("0\n")
    cgroups.ensure("node", [Hierarchy(tmp_path, False, frozenset({"rw", "cpuset"}))])
    assert (tmp_path / "node" / "cpuset.cpus").read_text() == "0-1\n"
    assert (tmp_path / "node" / "cpuset.mems").read_text() == "0\n"
