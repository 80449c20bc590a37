"""NetworkPolicies of the super cluster that keep tenants apart; no plugin enforces them here."""

import pytest

from eventually import eventually
from hansa.kube import resources
from tenant_league import pod

pytestmark = pytest.mark.timeout(180)
OURS = ("isolation.hansa.dev", "ingress.hansa.dev", "egress.hansa.dev")
UPPER = "hansa.dev/upper"


def selectors(rules, field):
    return [peer["namespaceSelector"]["matchLabels"] for rule in rules for peer in rule[field] if "ipBlock" not in peer]


async def policy(below, tenant, namespace, name):
    return (await below.there(resources.NETWORK_POLICIES, name, tenant.below(namespace)))["spec"]


async def test_policies_are_below_before_a_pod_is_and_come_back(mallory, alice, below, namespace):
    for tenant in (mallory, alice):
        await tenant.make(resources.PODS, "web", namespace, **pod())
        await below.there(resources.PODS, "web", tenant.below(namespace))
        for name in OURS:
            assert await below.look(resources.NETWORK_POLICIES, name, tenant.below(namespace)), name
    assert not (await mallory.client.list(resources.NETWORK_POLICIES, namespace=namespace)).items
    spaces = [(await below.look(resources.NAMESPACES, one.below(namespace)))["metadata"] for one in (mallory, alice)]
    ids = [one["labels"][UPPER] for one in spaces]
    for tenant, own in zip((mallory, alice), ids, strict=True):
        incoming = await policy(below, tenant, namespace, "ingress.hansa.dev")
        outgoing = await policy(below, tenant, namespace, "egress.hansa.dev")
        named = [*selectors(incoming["ingress"], "from"), *selectors(outgoing["egress"], "to")]
        assert {UPPER: own} in named
        assert all(one in ({UPPER: own}, {"kubernetes.io/metadata.name": tenant.key}) for one in named)
    await below.client.delete(resources.NETWORK_POLICIES, OURS[0], namespace=mallory.below(namespace))
    await policy(below, mallory, namespace, OURS[0])


async def test_policies_of_a_tenant_open_nothing(mallory, below, namespace):
    await mallory.make(resources.PODS, "web", namespace, **pod(metadata={"labels": {"app": "web"}}))
    await mallory.phase("web", namespace)
    where = mallory.below(namespace)
    everything = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{}], "egress": [{}]}
    await mallory.make(resources.NETWORK_POLICIES, "open", namespace, spec=everything)
    await mallory.make(resources.NETWORK_POLICIES, OURS[0], namespace, spec=everything)
    nodes = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}
    await mallory.make(resources.NETWORK_POLICIES, "nodes", namespace, spec=nodes)

    def is_labelled(found):
        return {"tenancy.x-k8s.io/ingress-policy", "tenancy.x-k8s.io/egress-policy"} <= found["metadata"][
            "labels"
        ].keys()

    await below.there(resources.PODS, "web", where, when=is_labelled)
    ours = {name: await policy(below, mallory, namespace, name) for name in OURS}
    copy = await policy(below, mallory, namespace, "open")
    assert copy["ingress"] == ours["ingress.hansa.dev"]["ingress"]
    assert copy["egress"] == ours["egress.hansa.dev"]["egress"]
    assert not (await policy(below, mallory, namespace, "nodes")).get("egress")
    assert ours[OURS[0]] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}

    for name in ("open", "nodes", OURS[0]):
        await mallory.client.delete(resources.NETWORK_POLICIES, name, namespace=namespace)
    await below.there(resources.PODS, "web", where, when=lambda found: not is_labelled(found))
    await below.gone(resources.NETWORK_POLICIES, "open", where)
    await policy(below, mallory, namespace, OURS[0])


async def test_an_administrator_names_peers_of_one_tenant(mallory, alice, below, namespace, annotated):
    for tenant in (mallory, alice):
        await tenant.make(resources.PODS, "web", namespace, **pod())
        await tenant.phase("web", namespace)
    async with annotated(mallory, "ingress-peers=198.18.0.0/15,kubernetes.io/metadata.name=edge"):

        async def is_named():
            rules = (await policy(below, mallory, namespace, "ingress.hansa.dev"))["ingress"]
            assert {"kubernetes.io/metadata.name": "edge"} in selectors(rules, "from")
            assert {"ipBlock": {"cidr": "198.18.0.0/15"}} in rules[0]["from"]
            return True

        await eventually(is_named, within=60)
        rules = (await policy(below, alice, namespace, "ingress.hansa.dev"))["ingress"]
        assert {"kubernetes.io/metadata.name": "edge"} not in selectors(rules, "from")


async def test_the_dns_of_the_super_cluster_is_asked_by_no_label_of_a_tenant(mallory, below, namespace):
    labels = {"tenancy.x-k8s.io/disable.dnsPolicyMutation": "true"}
    await mallory.make(resources.PODS, "web", namespace, **pod(metadata={"labels": labels}))
    copy = await below.there(resources.PODS, "web", mallory.below(namespace))
    assert copy["spec"]["dnsPolicy"] == "Default"
