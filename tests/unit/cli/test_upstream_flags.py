"""Command lines of upstream programs: booleans as Go reads them, every flag accepted, unused ones logged once."""

import argparse
import logging

import pytest

from hansa.cli import feature_gates, log_flags, main, unused_flags, upstream_flags, vc_manager, vc_syncer, virtual_node
from hansa.modes.virtualcluster_settings import PoolSettings

TRUE, FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")
PROGRAMS = {
    "vc-syncer": upstream_flags.SYNCER,
    "vc-scheduler": upstream_flags.SCHEDULER,
    "vc-manager": upstream_flags.MANAGER,
    "virtual-node": upstream_flags.VIRTUAL_NODE,
    "webhook": upstream_flags.WEBHOOK,
}
BOOLEANS = (
    *(("vc-syncer", name) for name in ("pool", "networks_joined", "install", "leader_elect", "deployment_on_meta")),
    *(("vc-scheduler", name) for name in ("all_or_nothing", "evict", "install", "leader_elect")),
    *(("vc-manager", name) for name in ("install", "etcd_fast", "leader_elect")),
    *(("virtual-node", name) for name in ("disable_taint", "system_services", "leader_elect")),
    ("webhook", "install"),
)


def parse(*words):
    return main.parser(words).parse_args(words)


def refusal(capsys, *words):
    with pytest.raises(SystemExit):
        parse(*words)
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("command", "name"), BOOLEANS)
def test_a_boolean_is_read_as_go_reads_it(capsys, command, name):
    flag = f"--{name.replace('_', '-')}"
    assert all(getattr(parse(command, f"{flag}={value}"), name) for value in TRUE)
    assert not any(getattr(parse(command, f"{flag}={value}"), name) for value in FALSE)
    assert getattr(parse(command, flag), name)
    assert refusal(capsys, command, f"{flag}=yes").endswith(': "yes" is not a boolean: use true or false')


@pytest.mark.parametrize("command", ["vc-syncer", "vc-scheduler", "vc-manager", "webhook"])
def test_the_definitions_are_installed_unless_told_otherwise(command):
    given = ((), ("--no-install",), ("--no-install=false",), ("--install", "--no-install"), ("--install=f",))
    assert [parse(command, *words).install for words in given] == [True, False, True, False, False]


@pytest.mark.parametrize("value", TRUE)
def test_the_gate_of_the_pool_is_read_as_go_reads_it(value):
    arguments = parse("vc-syncer", f"--feature-gates=SuperClusterPooling={value},VNodeProviderService=true")
    assert vc_syncer.read(arguments).mode.pool == PoolSettings()
    assert vc_syncer.read(parse("vc-syncer", "--feature-gates", "SuperClusterPooling=F")).mode.pool is None


def test_gates_of_several_flags_are_merged():
    words = ("vc-syncer", "--feature-gates=SuperClusterPooling=false", "--feature-gates=SuperClusterPooling=1,")
    assert parse(*words).feature_gates == {"SuperClusterPooling": True}


@pytest.mark.parametrize("command", ["vc-syncer", "vc-manager"])
def test_every_gate_of_upstream_is_known_and_an_unknown_one_is_refused(capsys, command):
    arguments = parse(command, "--feature-gates", ",".join(f"{gate}=true" for gate in feature_gates.UNUSED))
    assert [*unused_flags.given(arguments)] == [f"--feature-gates {gate}" for gate in feature_gates.UNUSED]
    for gates, problem in (
        ("SuperClusterPoolin=true", 'unknown feature gate "SuperClusterPoolin"; known: SuperClusterPooling, '),
        ("SuperClusterPooling", '"SuperClusterPooling" has no value: use SuperClusterPooling=true or'),
        ("SuperClusterPooling=on", 'SuperClusterPooling: "on" is not a boolean: use true or false'),
    ):
        assert f"argument --feature-gates: {problem}" in refusal(capsys, command, "--feature-gates", gates)


def test_the_gate_of_the_pool_has_no_effect_on_the_manager():
    given = unused_flags.given(parse("vc-manager", "--feature-gates=SuperClusterPooling=true"))
    assert given == {"--feature-gates SuperClusterPooling": "vc-syncer and vc-scheduler serve the pool"}


@pytest.mark.parametrize("command", PROGRAMS)
def test_every_flag_of_upstream_is_accepted_and_logged_once(caplog, command):
    flags = PROGRAMS[command]
    words = [f"{one.name}={'true' if one.is_boolean else 'x'}" for one in flags]
    arguments = parse(command, *words, *words, "--logtostderr", "--log_dir=x", "--klog.skip_headers=true", "--v=2")
    with caplog.at_level(logging.WARNING):
        unused_flags.report(arguments)
    logged = [record.flag for record in caplog.records]
    assert logged == [*(one.name for one in flags), "--logtostderr", "--log_dir", "--klog.skip_headers"]
    assert all(record.reason for record in caplog.records)


@pytest.mark.parametrize("command", PROGRAMS)
def test_a_flag_of_nobody_is_an_error(capsys, command):
    assert "unrecognized arguments: --no-such-flag" in refusal(capsys, command, "--no-such-flag")
    assert "unrecognized arguments: --log-lev" in refusal(capsys, command, "--log-lev=debug")


def test_the_command_line_of_upstreams_manager_is_accepted():
    arguments = parse(
        *("vc-manager", "--disable-stacktrace=true", "--enable-webhook=true", "--provisioner-timeout=10m"),
        *("--master-prov=native", "--leader-election=true", "--feature-gates=ClusterVersionPartialUpgrade=true"),
        *("--metrics-addr=:0", "--health-addr=:8080", "--num-reconciles=3", "--leader-elect-resource-name=lock"),
    )
    settings = vc_manager.read(arguments, {})
    assert (settings.provisioner, settings.deadline, settings.workers) == ("native", 600, 3)
    assert settings.election_namespace == "kube-system"


def test_a_time_limit_is_positive(capsys):
    assert refusal(capsys, "vc-manager", "--provisioner-timeout=0").endswith('"0" is not positive')


def test_the_command_line_of_upstreams_virtual_node_is_accepted():
    arguments = parse(
        *("virtual-node", "--nodename=vn1", "--provider=k8s", "--disable-taint=true", "--kube-api-qps=500"),
        *("--client-kubeconfig=lower", "--enable-controllers=PVControllers", "--klog.v=4", "--enable-node-lease=true"),
    )
    assert virtual_node.read(arguments, {}).lowers[0].node.taint is None
    assert arguments.verbosity == log_flags.DEBUG_VERBOSITY


@pytest.mark.parametrize("words", [("-v", "4"), ("-v=4",), ("--v=4",), ("--klog.v", "4")])
def test_the_verbosity_of_klog_has_three_names(words):
    assert parse("vc-syncer", *words).verbosity == 4


def test_only_given_flags_are_reported(caplog):
    unused_flags.report(argparse.Namespace())
    assert not caplog.records
