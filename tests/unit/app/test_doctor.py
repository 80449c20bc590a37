"""What `hansa doctor` concludes from single facts."""

import datetime
import email.utils

import pytest

from hansa.app.doctor import (
    certificates,
    clocks,
    network_policy,
    permissions,
    reachability,
    rights,
    versions,
    visiting,
    webhooks,
)
from hansa.app.doctor.finding import Level
from hansa.app.doctor.visiting import Role, Visit
from hansa.app.installation.rendering import Mode
from hansa.kube import errors
from hansa.kube.objects import NamespacedName, Object
from hansa.tenancy import installing

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=datetime.UTC)


def at(seconds):
    return NOW + datetime.timedelta(seconds=seconds)


def levels(findings):
    return [one.level for one in findings]


@pytest.mark.parametrize(
    ("theirs", "before", "after", "ahead"),
    [
        (0, 0, 0, 0.0),  # the Date is cut to whole seconds
        (0, -2, 3, 0.0),  # the answer took its time
        (60, 0, 1, 58.4),
        (-60, 0, 1, -59.6),
    ],
)
def test_a_clock_differs_only_as_far_as_the_answer_proves(theirs, before, after, ahead):
    date = email.utils.format_datetime(at(theirs).replace(microsecond=0), usegmt=True)
    assert visiting.seconds_ahead(date, at(before), at(after)) == pytest.approx(ahead)


@pytest.mark.parametrize("date", ["", "soon", "Thu, 01 Jan 1970 00:00:00"])
def test_a_date_that_cannot_be_read_proves_nothing(date):
    assert visiting.seconds_ahead(date, NOW, NOW) == 0.0


def test_clocks_that_are_apart_are_a_warning_and_far_apart_a_problem():
    visits = [Visit(Role.SUPER, "r1", ahead=60.0), Visit(Role.SUPER, "r2", ahead=-400.0)]
    found = list(clocks.examine(visits, [], NOW))
    assert levels(found) == [Level.WARNING, Level.PROBLEM]
    assert "super cluster r1: its clock is 60 s ahead of that of this machine" in found[0].what
    assert "super cluster r2: its clock is 400 s behind that of this machine" in found[1].what


def test_a_lease_that_was_renewed_in_the_future_names_its_holder():
    def lease(seconds):
        spec = {"renewTime": at(seconds).isoformat(), "holderIdentity": "vm1"}
        return Object.of({"metadata": {"namespace": "a", "name": "b"}, "spec": spec})

    assert levels(clocks.examine([Visit(Role.CLUSTER, "itself")], [lease(2)], NOW)) == [Level.OK]
    [found] = clocks.examine([Visit(Role.CLUSTER, "itself")], [lease(30)], NOW)
    assert found.what == "Lease a/b was renewed 30 s in the future by vm1"


def test_certificates_that_ended_are_problems_and_those_that_end_soon_are_warnings():
    day = 86400
    visits = [
        Visit(Role.SUPER, "r1", server="https://r1", serving_ends=at(-day), client_ends=at(3 * day)),
        Visit(Role.TENANT, "a/b", server="https://t", serving_ends=at(300 * day)),
    ]
    found = list(certificates.examine(visits, [], NOW))
    assert levels(found) == [Level.PROBLEM, Level.WARNING]
    assert found[0].what.startswith("super cluster r1: the certificate of https://r1 ended on 2026-01-01")
    assert "hansa join r1 --apply" in found[1].remedy
    assert levels(certificates.examine(visits[1:], [], NOW)) == [Level.OK]


@pytest.mark.parametrize("bundle", [None, "", "!", "YWJj"])
def test_a_ca_bundle_without_certificates_is_found(bundle):
    assert certificates.ca_ends({"caBundle": bundle}) == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.Unauthorized("refused"), "hansa join r1 --apply"),
        (errors.NotFound("no Secret"), "hansa join r1 --apply"),
        (errors.Unreachable("no answer"), "check that the API server is running"),
    ],
)
def test_the_remedy_of_a_server_that_does_not_answer_depends_on_the_reason(error, words):
    [found] = reachability.examine([Visit(Role.SUPER, "r1", error=error)])
    assert (found.level, words in found.remedy) == (Level.PROBLEM, True)


def test_versions_that_are_too_old_or_too_far_apart_are_found():
    visits = [
        Visit(Role.CLUSTER, "itself", version="v1.35.8"),
        Visit(Role.SUPER, "old", version="v1.27.3+k3s1"),
        Visit(Role.SUPER, "apart", version="v1.30.0"),
        Visit(Role.SUPER, "odd", version="main"),
    ]
    found = list(versions.servers(visits))
    assert [(one.level, "old" in one.what or "apart" in one.what) for one in found] == [
        (Level.PROBLEM, True),
        (Level.WARNING, True),
        (Level.WARNING, True),
    ]
    assert levels(versions.servers(visits[:1])) == [Level.OK]


def crd(change=None):
    wanted = next(one for one in installing.definitions() if "virtualclusters" in one.name)
    plain = wanted.to_dict() | {"status": {"conditions": [{"type": "Established", "status": "True"}]}}
    if change:
        change(plain["spec"]["versions"][0])
    return wanted, Object.of(plain)


def unserve(version):
    version["served"] = False


def lose_a_field(version):
    del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["serviceCidr"]


def test_a_definition_of_another_version_is_found():
    assert versions.definition(*crd()) is None
    wanted, _ = crd()
    assert "is missing" in versions.definition(wanted, None).what
    assert "does not serve v1alpha1" in versions.definition(*crd(unserve)).what
    assert "lacks .spec.serviceCidr" in versions.definition(*crd(lose_a_field)).what
    wanted, found = crd()
    assert "is not Established" in versions.definition(wanted, found.with_fields(status={})).what


def daemon_set(name, image="example.com/agent:1"):
    template = {"spec": {"containers": [{"name": "c", "image": image}]}}
    return Object.of({"metadata": {"name": name}, "spec": {"template": template}})


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ([daemon_set("calico-node")], Level.OK),
        ([daemon_set("canal", "docker.io/calico/node:1"), daemon_set("canal", "calico-node:1")], Level.OK),
        ([daemon_set("cilium")], Level.OK),
        ([daemon_set("kube-flannel-ds")], Level.PROBLEM),
        ([daemon_set("aws-node", "amazon-k8s-cni:1")], Level.PROBLEM),
        ([daemon_set("aws-node", "amazon/aws-network-policy-agent:1")], Level.OK),
        ([daemon_set("kube-proxy")], Level.UNKNOWN),
        ([], Level.UNKNOWN),
    ],
)
def test_network_plugins_are_known_by_their_daemon_sets(given, level):
    found = network_policy.judged(given)
    assert found.level is level
    assert level is Level.OK or "deny" in found.remedy or "denies" in found.remedy


def test_webhooks_of_others_are_left_alone():
    def configuration(name, hook):
        return Object.of({"metadata": {"name": name}, "webhooks": [{"name": hook}]})

    ours = [configuration("hansa-cluster-selector", "x"), configuration("any", "cluster-selector.hansa.dev")]
    assert [webhooks.is_ours(one) for one in [*ours, configuration("istio", "hansa.dev.example.com")]] == [
        True,
        True,
        False,
    ]


def test_the_rights_of_a_component_are_those_of_its_roles():
    pool = rights.of_mode(Mode.POOL, "here")
    assert {one.name for one in pool} == {"vc-manager", "vc-scheduler", "vc-syncer"}
    assert {one.namespace for one in pool} == {"here"}
    scheduler = pool[NamespacedName("here", "vc-scheduler")]
    assert rights.Right("get", "", "namespaces", name="kube-system") in scheduler
    assert rights.Right("update", "coordination.k8s.io", "leases", namespace="here") in scheduler
    assert rights.of_component("kubelet") == []


@pytest.mark.parametrize(
    ("accounts", "known"),
    [
        (("vc-manager", "vc-syncer", "vn-agent"), {"vc-manager", "vc-syncer", "vn-agent"}),
        (("vc-manager", "vc-syncer", "vc-scheduler"), {"vc-manager", "vc-syncer", "vc-scheduler"}),
        (("vc-manager",), set()),
    ],
)
def test_the_mode_is_known_by_its_service_accounts(accounts, known):
    found = permissions.wanted(NamespacedName("here", name) for name in accounts)
    assert {one.name for one in found} == known
