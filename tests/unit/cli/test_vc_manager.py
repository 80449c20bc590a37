"""The flags of `hansa vc-manager`."""

import argparse
import datetime
from pathlib import Path

import pytest

from hansa.cli import vc_manager
from hansa.kube import certificates
from hansa.runtime.errors import HansaError


def settings(*words, environment=None):
    parser = argparse.ArgumentParser()
    vc_manager.add_to(parser.add_subparsers())
    return vc_manager.read(parser.parse_args(["vc-manager", *words]), environment or {"XDG_STATE_HOME": "/home/s"})


def test_without_flags_processes_of_this_machine_serve_with_an_etcd_each():
    found = settings()
    assert (found.provisioner, found.is_installed, found.election_namespace) == ("process", True, "")
    assert (found.process.is_etcd_shared, found.process.state) == (False, Path("/home/s/hansa-tenants"))


def test_tenants_programs_keep_their_niceness_unless_a_flag_raises_it():
    assert [settings().process.nice, settings("--tenant-nice", "7").process.nice] == [0, 7]


@pytest.mark.parametrize(
    ("words", "installs"),
    [
        ((), (True, True)),
        (("--no-install",), (False, False)),
        (("--install=false", "--sample-cluster-versions"), (False, True)),
        (("--sample-cluster-versions=false",), (True, False)),
    ],
)
def test_samples_are_installed_with_definitions_or_on_their_own(words, installs):
    found = settings(*words)
    assert (found.is_installed, found.has_samples) == installs


def test_upstreams_name_for_its_provisioner_is_understood():
    assert settings("--provisioner", "native").provisioner == settings("--provisioner", "statefulset").provisioner


@pytest.mark.parametrize(
    "words",
    [
        ("--num-reconciles", "0"),
        ("--service-range", "10.0.0.0/99"),
        ("--service-range", "everything"),
        ("--address", "localhost"),
        ("--provisioner", "magic"),
        ("--etcd", "none"),
        ("--tenant-nice", "20"),
        ("--tenant-nice", "-1"),
    ],
)
def test_nonsense_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        settings(*words)
    assert words[0] in capsys.readouterr().err


def test_a_range_that_cannot_be_divided_is_refused():
    with pytest.raises(HansaError, match="cannot be divided"):
        settings("--service-prefix", "8")


def test_the_authority_of_vn_agents_is_read_at_once(tmp_path):
    now = datetime.datetime.now(datetime.UTC)
    authority, nonsense = tmp_path / "ca.crt", tmp_path / "nonsense"
    pair = certificates.authority("vn-agents", now)
    authority.write_bytes(pair.certificate + pair.key)
    nonsense.write_text("PEM")
    found = settings("--vn-agent-ca", str(authority))
    assert (found.vn_agent_ca, found.process.vn_agent_ca) == (pair.certificate, authority)
    for path in (nonsense, tmp_path / "missing"):
        with pytest.raises(HansaError, match="give a file with PEM certificates"):
            settings("--vn-agent-ca", str(path))
