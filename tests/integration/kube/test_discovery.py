"""Discovery on a real API server: both ways tell the same."""

from hansa.kube import discovery
from hansa.kube.client import Client
from hansa.kube.resources import DEPLOYMENTS, NODES, PODS


async def test_resources_are_found_with_their_verbs_and_subresources(client: Client) -> None:
    catalog = await discovery.discover(client)
    pods = catalog.find(kind="Pod", group="")
    assert pods is not None
    assert (pods.resource, pods.resource.kind, pods.short_names) == (PODS, "Pod", ("po",))
    assert {"watch", "patch"} <= pods.verbs
    assert {"status", "log", "exec", "eviction"} <= pods.subresources
    deployments = catalog.find(plural="deployments")
    assert deployments is not None
    assert deployments.resource == DEPLOYMENTS
    nodes = catalog.find(kind="Node")
    assert nodes is not None
    assert (nodes.resource, nodes.resource.namespaced) == (NODES, False)
    assert catalog.find(kind="Unicorn") is None


async def test_a_server_without_aggregated_discovery_is_asked_group_by_group(client: Client) -> None:
    aggregated, plain = await discovery.discover(client), await discovery.discover_plainly(client)

    def facts(catalog: discovery.Catalog) -> set[tuple[object, ...]]:
        return {(o.resource, o.resource.kind, o.resource.namespaced, o.verbs, o.subresources) for o in catalog.offers}

    assert facts(plain) == facts(aggregated)
    assert plain.find(kind="HorizontalPodAutoscaler") == aggregated.find(kind="HorizontalPodAutoscaler")
