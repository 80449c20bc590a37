"""Command lines of a control plane."""

from pathlib import Path

import pytest

from hansa.local import allocation
from hansa.local.control_plane.command_lines import COMPONENTS, CommandLines
from hansa.local.spec import ClusterSpec
from hansa.local.state import Record
from hansa.programs import components


def of(**wishes):
    ports = {components.APISERVER: 1, components.CONTROLLERS: 2, components.SCHEDULER: 3}
    record = Record(ClusterSpec("a", **wishes), slot=7, ports=ports)
    return CommandLines(
        record=record,
        folder=Path("/state/a"),
        site=allocation.loopback_site(record),
        etcd_socket=Path("/state/etcd/client.sock"),
        binaries={name: Path("/bin") / name for name in COMPONENTS},
    )


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_component_ends_with_the_flags_of_the_user(component):
    argv = of(flags={component: ("--v=9", "--x")}).argv(component)
    assert argv[0] == f"/bin/{component}"
    assert argv[-2:] == ["--v=9", "--x"]


def test_the_api_server_keeps_its_objects_below_its_own_prefix():
    argv = of().argv(components.APISERVER)
    assert "--etcd-prefix=/hansa/a" in argv
    assert "--etcd-servers=unix:///state/etcd/client.sock" in argv


def test_everything_listens_on_loopback_only():
    for component in (components.APISERVER, components.CONTROLLERS, components.SCHEDULER):
        assert "--bind-address=127.0.0.1" in of().argv(component)


def test_an_audit_log_is_written_only_on_demand():
    assert not [flag for flag in of().argv(components.APISERVER) if "audit" in flag]
    assert "--audit-log-path=/state/a/log/audit.log" in of(audit=True).argv(components.APISERVER)


def test_limits_are_lifted_only_on_demand():
    scheduler = Path("/state/a/scheduler.yaml")
    assert "qps" not in of().files()[scheduler]
    assert "qps: 5000" in of(lift_limits=True).files()[scheduler]
    assert "--kube-api-qps=5000" in of(lift_limits=True).argv(components.CONTROLLERS)


def test_etcd_gives_up_safety_only_on_demand():
    assert "--unsafe-no-fsync" not in components.etcd_argv(Path("etcd"), Path("/x"), is_fast=False)
    assert "--unsafe-no-fsync" in components.etcd_argv(Path("etcd"), Path("/x"), is_fast=True)
