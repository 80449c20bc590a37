"""Translations of a tenant's pods whose reason a golden file cannot show."""

from dataclasses import replace
from typing import Any

import pytest

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, lifecycle, references
from hansa.model.pair import Grade, Key, Link
from hansa.model.placement import PlacementContext
from hansa.model.translation.common import names
from hansa.model.translation.tenant import messages
from hansa.model.translation.tenant.pod import LIFECYCLE, environment
from hansa.model.translation.tenant.tenant_settings import Allowance
from tenants import API, KEY, LINK, MODE, a_link, a_pod, a_service, an_object, desired, follow, upper_patches

RULE = MODE.rules[resources.PODS]
KUBERNETES = a_service("kubernetes", "default", **API)
DNS = a_service("kube-dns", "kube-system", clusterIP="10.32.0.10", ports=[{"port": 53}])


def table_of(pod: Object, link: Link) -> dict[str, str]:
    """The variables that its containers find."""
    [named] = [one for one in RULE.references(pod) if one.resource == resources.CONFIG_MAPS]
    stand_in = an_object("ConfigMap", named.name, named.namespace)
    data: dict[str, str] = desired(stand_in, link, resources.CONFIG_MAPS).get("data")
    return data


def test_a_token_is_the_one_that_the_tenants_namespace_asks_for() -> None:
    pod = a_pod({"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]})
    [token] = references.of_pod(pod).tokens
    [source] = desired(pod).spec["volumes"][0]["projected"]["sources"]
    assert token.namespace == "shop"
    assert source["secret"]["name"] == names.token_secret(token, upper_id=LINK.upper_id)


def test_the_environment_has_the_services_of_the_namespace_and_the_api_server() -> None:
    others = [a_service("other", "elsewhere", clusterIP="10.32.0.9", ports=[{"port": 1}])]
    headless = a_service("none", clusterIP="None", ports=[{"port": 1}])
    web = a_service(
        "web-site", clusterIP="10.32.0.7", ports=[{"name": "http-a", "port": 80}, {"name": "b", "port": 81}]
    )
    env = table_of(a_pod(), a_link([KUBERNETES, web, headless, *others]))
    assert env["WEB_SITE_SERVICE_HOST"] == "10.32.0.7"
    assert env["WEB_SITE_SERVICE_PORT"] == env["WEB_SITE_SERVICE_PORT_HTTP_A"] == "80"
    assert env["WEB_SITE_SERVICE_PORT_B"] == env["WEB_SITE_PORT_81_TCP_PORT"] == "81"
    assert env["KUBERNETES_SERVICE_HOST"] == "10.32.0.1"
    assert not [name for name in env if name.startswith(("OTHER", "NONE"))]


def test_variables_have_the_form_that_kubelets_give_them() -> None:
    service = a_service("db", ports=[{"name": "sql", "port": 5432, "protocol": "UDP"}])
    assert environment.service_variables(service, "fd00::1") == {
        "DB_SERVICE_HOST": "fd00::1",
        "DB_SERVICE_PORT": "5432",
        "DB_SERVICE_PORT_SQL": "5432",
        "DB_PORT": "udp://[fd00::1]:5432",
        "DB_PORT_5432_UDP": "udp://[fd00::1]:5432",
        "DB_PORT_5432_UDP_PROTO": "udp",
        "DB_PORT_5432_UDP_PORT": "5432",
        "DB_PORT_5432_UDP_ADDR": "fd00::1",
    }


def test_a_pod_without_service_links_gets_variables_of_its_api_server_only() -> None:
    web = a_service("web", clusterIP="10.32.0.7", ports=[{"port": 80}])
    env = table_of(a_pod({"enableServiceLinks": False}), a_link([KUBERNETES, web]))
    assert env["KUBERNETES_SERVICE_HOST"] == "10.32.0.1"
    assert not [name for name in env if name.startswith("WEB")]


def test_all_containers_read_the_service_variables_and_their_own_take_precedence() -> None:
    """What comes later wins, and `env` wins over all."""
    main, mine = {"name": "main", "image": "main:1"}, {"secretRef": {"name": "mine"}}
    pod = a_pod({"containers": [main | {"envFrom": [mine]}], "initContainers": [main]})
    env = {"configMapRef": {"name": "services.hansa.dev"}}
    lower = desired(pod).spec
    assert lower["containers"][0]["envFrom"] == [env, mine]
    assert lower["initContainers"][0]["envFrom"] == [env]
    assert lower["enableServiceLinks"] is False  # the super cluster's own are not for tenants


def test_service_variables_are_computed_from_the_services_of_the_namespace_and_the_api_server() -> None:
    computed_from = MODE.rules[resources.CONFIG_MAPS].computed_from
    api, all_of_them = ("default", "kubernetes"), ("shop", "")
    for name, expected in (("services.hansa.dev", [api, all_of_them]), ("kubernetes.hansa.dev", [api]), ("mine", [])):
        found = computed_from(Key("blue", resources.CONFIG_MAPS, "shop", name))
        assert [(one.namespace, one.name) for one in found] == expected


def test_without_service_variables_no_data_is_written() -> None:
    """A server keeps no empty data: it would be patched again and again."""
    empty = an_object("ConfigMap", "services.hansa.dev", "shop")
    assert desired(empty, a_link(), resources.CONFIG_MAPS).get("data") is None


def test_a_tenants_config_map_with_a_reserved_name_is_replaced_by_the_computed_one() -> None:
    own = an_object("ConfigMap", "services.hansa.dev", "shop", data={"WEB": "1"}, immutable=True)
    lower = desired(own, a_link([KUBERNETES]), resources.CONFIG_MAPS)
    assert "WEB" not in lower.get("data")
    assert lower.get("immutable") is None


def test_addresses_are_those_of_the_super_cluster() -> None:
    copy = a_service("kubernetes", "default", clusterIP="10.96.0.77")
    lower = desired(a_pod(), a_link([KUBERNETES], [copy], service_ranges=())).spec
    assert lower["hostAliases"] == [
        {"ip": "10.96.0.77", "hostnames": ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]}
    ]
    same = desired(a_pod(), a_link([KUBERNETES], [KUBERNETES])).spec
    assert "hostAliases" not in same


def test_without_a_service_the_api_server_address_is_that_of_the_settings() -> None:
    env = table_of(a_pod(), a_link([], service_ranges=(), api_host="192.0.2.1", api_port="6443"))
    assert env == {
        "KUBERNETES_SERVICE_HOST": "192.0.2.1",
        "KUBERNETES_SERVICE_PORT": "6443",
        "KUBERNETES_SERVICE_PORT_HTTPS": "6443",
    }


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ({}, "None"),
        ({"dnsPolicy": "ClusterFirst"}, "None"),
        ({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, "None"),
        ({"dnsPolicy": "ClusterFirst", "hostNetwork": True}, "ClusterFirst"),
        ({"dnsPolicy": "Default"}, "Default"),
        ({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.1"]}}, "None"),
    ],
)
def test_the_cluster_that_names_are_asked_of_is_the_tenants(spec: dict[str, Any], policy: str) -> None:
    lower = desired(a_pod(spec), a_link([DNS])).spec
    assert lower["dnsPolicy"] == policy
    asked = lower.get("dnsConfig", {}).get("nameservers")
    assert asked == (spec.get("dnsConfig", {}).get("nameservers") or (["10.32.0.10"] if policy == "None" else None))


def test_names_are_the_tenants_own() -> None:
    config = desired(a_pod(), a_link([DNS], cluster_domain="my.local", dns_options=(("ndots", "3"),))).spec["dnsConfig"]
    assert config["searches"] == ["shop.svc.my.local", "svc.my.local", "my.local"]
    assert config["options"] == [{"name": "ndots", "value": "3"}]


def test_the_super_clusters_dns_is_used_only_where_it_is_allowed() -> None:
    kept = a_pod({"dnsPolicy": "ClusterFirst"}, labels={keys.KEEP_DNS_POLICY: "true"})
    assert desired(a_pod()).spec["dnsPolicy"] == "Default"
    assert desired(kept, a_link([DNS])).spec["dnsPolicy"] == "None"
    allowed = frozenset({Allowance.SUPER_CLUSTER_DNS})
    assert desired(a_pod({"dnsPolicy": "ClusterFirst"}), a_link(allowed=allowed)).spec["dnsPolicy"] == "ClusterFirst"
    assert desired(kept, a_link([DNS], allowed=allowed)).spec["dnsPolicy"] == "ClusterFirst"
    assert desired(a_pod(), a_link([DNS], allowed=allowed)).spec["dnsPolicy"] == "None"


def test_pods_reference_the_services_of_their_variables_and_dns() -> None:
    def services(pod: Object) -> list[tuple[str, str]]:
        return [(one.namespace, one.name) for one in RULE.references(pod) if one.resource == resources.SERVICES]

    assert services(a_pod()) == [("default", "kubernetes"), ("kube-system", "kube-dns")]
    assert services(a_pod({"dnsPolicy": "Default"})) == [("default", "kubernetes")]


def test_a_pod_of_a_stateful_set_keeps_its_host_name_and_subdomain() -> None:
    lower = desired(a_pod({"hostname": "web-0", "subdomain": "web", "setHostnameAsFQDN": False})).spec
    assert (lower["hostname"], lower["subdomain"]) == ("web-0", "web")


def test_a_node_that_is_named_is_one_more_demand_on_every_term() -> None:
    terms = [
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "b", "operator": "Exists"}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    lower = desired(a_pod({"nodeName": "n1", "affinity": {"nodeAffinity": required, "podAffinity": {}}})).spec
    here = [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
    [asked] = lower["affinity"]["nodeAffinity"].values()
    assert asked["nodeSelectorTerms"] == [term | {"matchFields": here} for term in terms]
    assert "nodeName" not in lower


def test_schedulers_are_those_that_the_super_cluster_lets_tenants_name() -> None:
    pod = a_pod({"schedulerName": "batch", "priority": 7, "preemptionPolicy": "Never", "overhead": {"cpu": "1"}})
    assert not {"schedulerName", "priority", "preemptionPolicy", "overhead"} & desired(pod).spec.keys()
    assert desired(pod, a_link(schedulers=frozenset({"batch"}))).spec["schedulerName"] == "batch"


def test_a_term_that_names_no_namespaces_stays_as_it_is() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert desired(a_pod({"affinity": affinity})).spec["affinity"] == affinity


def test_what_a_pod_reads_about_itself_follows_when_it_changes() -> None:
    item = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    spec = {"volumes": [{"name": "me", "downwardAPI": {"items": [item]}}]}
    before, after = (a_pod(spec, labels={"a": value}) for value in "12")
    [part] = follow(desired(before).with_fields(status={}), after)
    [changed] = part.patch["metadata"]["annotations"].values()
    assert changed == 'a="2"'


def test_a_tenant_cannot_forge_what_its_copy_bears() -> None:
    forged = {keys.UPPER: "another", keys.UPPER_UID: "1", keys.TENANT_CLUSTER: "another", keys.VC_UID: "2"}
    lower = desired(a_pod(labels=forged, annotations=forged))
    assert (lower.labels[keys.UPPER], lower.labels[keys.TENANT_CLUSTER]) == (LINK.upper_id, KEY)
    assert (lower.annotations[keys.UPPER_UID], lower.annotations[keys.TENANT_CLUSTER]) == ("upper-uid", KEY)
    assert keys.VC_UID not in lower.annotations


def test_a_pod_with_scheduling_gates_is_placed_nowhere() -> None:
    facts = PlacementContext(frozenset({"super"}), {}, lambda *_: frozenset())
    key = Key(LINK.upper, resources.PODS, "shop", "web")
    assert RULE.placement(a_pod({"schedulingGates": [{"name": "quota"}]}), key, facts) == {}
    assert RULE.placement(a_pod(), key, facts) == {"super": Grade.CHOSEN}


GATED = {"readinessGates": [{"conditionType": "example.com/open"}]}
CLOSED = {"type": "example.com/open", "status": "False"}
OPEN = {"type": "example.com/open", "status": "True", "lastTransitionTime": "2026-05-01T10:00:00Z"}
READY = {"type": "Ready", "status": "True"}


def test_a_readiness_gate_set_in_the_upper_pod_is_set_in_the_lower_one() -> None:
    upper = a_pod(GATED).with_fields(status={"conditions": [OPEN]})
    lower = (
        desired(a_pod(GATED)).with_metadata(resource_version="7").with_fields(status={"conditions": [READY, CLOSED]})
    )
    [part] = follow(lower, upper)
    assert (part.subresource, part.patch) == (
        "status",
        {"metadata": {"resourceVersion": "7"}, "status": {"conditions": [READY, OPEN]}},
    )
    assert follow(lower.with_fields(status={"conditions": [READY, OPEN]}), upper) == []
    assert follow(desired(a_pod()), a_pod().with_fields(status={"conditions": [READY]})) == []


def test_the_condition_of_a_readiness_gate_is_not_synced_up() -> None:
    upper = a_pod(GATED).with_fields(status={"conditions": [OPEN]})
    lower = desired(upper).with_metadata(uid="lower").with_fields(status={"conditions": [CLOSED, READY]})
    [part] = upper_patches(upper, lower)
    assert part.patch["status"] == {"conditions": [READY, OPEN]}


def test_only_conditions_of_readiness_gates_are_synced_down() -> None:
    assert RULE.status_down(a_pod().with_fields(status={"conditions": [READY]})) is None
    assert RULE.status_down(a_pod(GATED).with_fields(status={"conditions": [READY, OPEN]})) == {"conditions": [OPEN]}


@pytest.mark.parametrize("kind", ["Ready", "ContainersReady", "Initialized", "PodScheduled", "DisruptionTarget"])
def test_a_condition_of_kubelets_and_schedulers_is_theirs_although_a_gate_names_it(kind: str) -> None:
    mine, theirs = ({"type": kind, "status": status} for status in ("False", "True"))
    gated = a_pod({"readinessGates": [{"conditionType": kind}]}).with_fields(status={"conditions": [mine]})
    assert RULE.status_down(gated) is None
    lower = desired(gated).with_metadata(uid="lower", resource_version="7").with_fields(status={"conditions": [theirs]})
    assert follow(lower, gated) == []
    [part] = upper_patches(gated, lower)
    assert part.patch["status"] == {"conditions": [theirs]}


def test_a_pod_is_bound_to_the_node_that_its_lower_one_is_on() -> None:
    assert RULE.bound_node(a_pod({"nodeName": "n1"})) == "n1"
    assert RULE.bound_node(a_pod()) == ""


@pytest.mark.parametrize(
    ("annotations", "status", "has_lived"),
    [
        ({keys.LOWER_UID: "1"}, {"conditions": [{"type": "PodScheduled", "status": "True"}]}, True),
        ({keys.LOWER_UID: "1"}, {"startTime": "2026-05-01T10:00:00Z"}, True),
        ({keys.LOWER_UID: "1"}, {"conditions": [{"type": "PodScheduled", "status": "False"}]}, False),
        ({keys.LOWER_UID: "1"}, {}, False),
        ({}, {"conditions": [{"type": "PodScheduled", "status": "True"}]}, False),
    ],
)
def test_a_pod_that_was_bound_ends_when_its_lower_one_is_lost(
    annotations: dict[str, str], status: dict[str, Any], has_lived: bool
) -> None:
    assert LIFECYCLE.has_run(a_pod(annotations=annotations).with_fields(status=status)) is has_lived
    assert replace(LIFECYCLE, has_run=lifecycle.POD.has_run) == lifecycle.POD


def test_messages_do_not_reveal_the_tenant_key() -> None:
    message = f"Successfully assigned {KEY}-shop/web to n1; volume {KEY}-shop/data"
    assert messages.tenant_message(message, LINK) == "Successfully assigned shop/web to n1; volume shop/data"
    assert MODE.upper_message(message, LINK) == messages.tenant_message(message, LINK)


def test_a_status_names_the_tenants_namespace_also_where_the_lower_name_was_cut() -> None:
    long = "a-very-long-tenant-namespace-name-that-overflows-63"
    upper = a_pod().with_metadata(namespace=long)
    below = MODE.lower_name(Key(LINK.upper, resources.PODS, long, "web"), "u", LINK)
    assert below == NamespacedName(f"{KEY}-a-very-long-tenant-namespace-n-bb3f1", "web")
    lower = (
        desired(upper)
        .with_metadata(uid="l")
        .with_fields(status={"message": f'quota of "{below.namespace}" is used up'})
    )
    [part] = upper_patches(upper, lower)
    assert part.patch["status"] == {"message": f'quota of "{long}" is used up'}


def test_a_hostname_as_fqdn_is_that_of_the_upper_pod() -> None:
    asked = {"subdomain": "s", "setHostnameAsFQDN": True}

    def named(**spec: Any) -> tuple[Any, Any]:
        lower = desired(a_pod(asked | spec)).spec
        return lower.get("hostnameOverride"), lower.get("setHostnameAsFQDN")

    assert named() == ("web.s.shop.svc.cluster.local", None)
    assert named(hostname="h") == ("h.s.shop.svc.cluster.local", None)
    assert named(subdomain=None) == (None, True), "there is no whole name"
    assert named(hostNetwork=True) == (None, True), "it has its node's name"
    assert named(hostname="h" * 60) == (None, None), "no kernel takes it"
