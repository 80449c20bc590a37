"""The command lines of a tenant's control plane."""

from dataclasses import replace
from pathlib import Path

import pytest

import virtual_clusters
from hansa.kube import resources
from hansa.modes import virtualcluster
from hansa.modes.virtualcluster_settings import VirtualClusterSettings
from hansa.programs import components
from hansa.tenancy import api
from hansa.tenancy.api import network
from hansa.tenancy.operator.process import commands, flags
from hansa.tenancy.operator.process.commands import Commands, Store
from hansa.tenancy.operator.process.folder import Folder
from hansa.tenancy.operator.provisioning import DesiredControlPlane

HELP = """
Generic flags:
      --max-requests-inflight int    how many
      --feature-gates string         gates
  -v, --v Level                      number
      --controllers strings          which
      --concurrent-deployment-syncs int32
      --etcd-servers strings         where
"""
SHARED = Store("https://127.0.0.1:1", "/id", Path("/e/ca.crt"), Path("/e/c.crt"), Path("/e/c.key"))


def lines(store=None, *, address="127.0.0.1", **args):
    vc = api.virtual_cluster(virtual_clusters.virtual_cluster("vc", "ns"))
    version = api.cluster_version(virtual_clusters.cluster_version("cv", **args))
    known = flags.known(HELP)
    programs = {name: Path("/bin") / name for name in ("kube-apiserver", "kube-controller-manager")}
    return Commands(
        desired=DesiredControlPlane(vc, version, "ns-abc-vc", network("10.224.0.0/20")),
        folder=Folder(Path("/state/tenants/id")),
        store=store or Store("unix:///state/tenants/id/etcd/client.sock"),
        address=address,
        port=20001,
        binaries=programs,
        known=dict.fromkeys(programs, known),
    )


def test_the_flags_of_a_program_are_parsed_from_its_help():
    assert flags.known(HELP) >= {"max-requests-inflight", "v", "controllers"}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--a=1", "--b"], {"a": "1", "b": "true"}),
        (["--client-cert-auth "], {"client-cert-auth": "true"}),
        (["--a", "1", "--b=x=y"], {"a": "1", "b": "x=y"}),
        (["stray", "--a="], {"a": ""}),
    ],
)
def test_flags_are_read_as_people_write_them(words, found):
    assert flags.parse(words) == found


def test_a_versions_arguments_are_honoured_where_they_make_sense():
    asked = ["--max-requests-inflight=5", "--gone-since-1.24=true", "--v=4", "--feature-gates=$(GATES)"]
    argv = lines(apiserver=[*asked, "--etcd-servers=https://etcd-0.etcd:2379"]).argv(components.APISERVER)
    assert {"--max-requests-inflight=5", "--v=4"} <= set(argv)
    assert not [word for word in argv if "gone-since" in word or "GATES" in word or "etcd-0" in word]
    assert "--etcd-servers=unix:///state/tenants/id/etcd/client.sock" in argv


def test_no_flag_is_passed_twice():
    argv = lines(SHARED, apiserver=["--feature-gates=A=true"], controller_manager=["--controllers=*"])
    for line in (argv.argv(components.APISERVER), argv.argv(components.CONTROLLERS)):
        names = [word.partition("=")[0] for word in line]
        assert len(names) == len(set(names))


def test_a_shared_etcd_is_used_with_the_tenants_own_credentials_below_its_prefix():
    argv = lines(SHARED, apiserver=["--feature-gates=A=true"]).argv(components.APISERVER)
    assert {"--etcd-prefix=/id", "--etcd-certfile=/e/c.crt", "--etcd-compaction-interval=0"} <= set(argv)
    assert "--feature-gates=A=true,WatchList=false" in argv


def test_an_endpoint_is_published_only_where_it_leads_somewhere():
    assert "--endpoint-reconciler-type=none" in lines().argv(components.APISERVER)
    assert "--endpoint-reconciler-type=lease" in lines(address="192.0.2.1").argv(components.APISERVER)


def test_controllers_that_have_nothing_to_do_are_off_unless_a_version_names_them():
    assert "-node-lifecycle-controller" in commands.without_idle("*").split(",")
    asked = commands.without_idle("*,node-lifecycle-controller,-job-controller").split(",")
    assert "-node-lifecycle-controller" not in asked
    assert {"node-lifecycle-controller", "-job-controller", "-ttl-controller"} <= set(asked)
    assert commands.without_idle("namespace-controller") == "namespace-controller"


def test_resources_that_the_syncer_watches_in_a_tenant_have_a_watch_cache():
    settings = VirtualClusterSettings()
    watched = {*virtualcluster.mode(settings).rules, *virtualcluster.shared(settings).rules, resources.QUOTAS}
    without = {(group, name) for group, names in commands.UNCACHED.items() for name in names}
    assert {(resource.group, resource.plural) for resource in watched}.isdisjoint(without)
    [sizes] = [flag for flag in lines().argv(components.APISERVER) if flag.startswith("--watch-cache-sizes=")]
    assert {"limitranges#0", "roles.rbac.authorization.k8s.io#0"} <= set(sizes.partition("=")[2].split(","))


def test_a_shared_etcd_is_not_asked_for_what_all_tenants_wrote():
    assert "--watch-cache-sizes" not in " ".join(lines(SHARED).argv(components.APISERVER))


def test_an_api_server_takes_less_memory_where_many_share_an_etcd():
    shared, own = lines(SHARED).options(components.APISERVER), lines().options(components.APISERVER)
    assert int(shared.defaults["GOGC"]) < int(own.defaults["GOGC"])
    assert lines().options(components.CONTROLLERS) == lines(SHARED).options(components.CONTROLLERS) == commands.LEAN


@pytest.mark.parametrize("component", [components.APISERVER, components.CONTROLLERS])
def test_programs_are_started_with_the_niceness_of_the_settings(component):
    assert [lines().options(component).nice, replace(lines(), nice=7).options(component).nice] == [0, 7]


def test_vn_agents_are_verified_by_their_authority_if_it_is_given():
    flag = "--kubelet-certificate-authority"
    plain, verifying = lines(), replace(lines(), vn_agent_ca=Path("/etc/vn-agent/ca.crt"))
    assert not [word for word in plain.argv(components.APISERVER) if word.startswith(flag)]
    assert f"{flag}=/etc/vn-agent/ca.crt" in verifying.argv(components.APISERVER)
