"""Where objects of a source cluster are placed: proxy pods where the binder put them, the rest where it is used. Pure.

The objects in a target that is the source cluster itself are there already, so nothing but delegates is created there.
"""

from collections.abc import Callable

from hansa.kube.objects import Object
from hansa.model import keys, placement, stamp
from hansa.model.pair import Grade, Key, Unknown
from hansa.model.placement import Intents, Placement, PlacementContext
from hansa.model.translation.federation import target_link
from hansa.model.translation.federation.target_link import TargetLink


def of_pod(proxy: Object, key: Key, context: PlacementContext) -> Intents:
    """In the target of the virtual node that the proxy pod is bound to, or else of the binder's candidate."""
    node = placement.node_of(proxy)
    cluster = context.cluster_of_node.get(node or proxy.annotations.get(keys.CANDIDATE, ""))
    if cluster is None:
        return {}
    target = target_link.of(context.links[cluster])
    # In a target that is being removed, bound pods stay placed until they are deleted, so that their status is synced.
    is_open = bool(node) or not (target.is_leaving or is_gated(proxy))
    return {cluster: Grade.CHOSEN} if is_open and target.takes(key.namespace) else {}


def is_gated(pod: Object) -> bool:
    """Whether a pod has scheduling gates."""
    return b'"schedulingGates"' in pod.raw("spec") and bool(pod.spec.get("schedulingGates"))


def in_other_clusters(policy: Placement) -> Placement:
    """The policy, except for targets that are the source cluster itself."""

    def narrowed(obj: Object, key: Key, context: PlacementContext) -> Intents:
        intents = policy(obj, key, context)
        if isinstance(intents, Unknown):
            return intents
        return {c: grade for c, grade in intents.items() if not target_link.of(context.links[c]).is_self}

    return narrowed


def in_every_target(is_global: Callable[[Object], bool]) -> Placement:
    """In each target that takes objects of the namespace, for objects that are global."""

    def policy(obj: Object, key: Key, context: PlacementContext) -> Intents:
        if not is_global(obj):
            return {}
        targets = {name: target_link.of(link) for name, link in context.links.items()}
        return {name: Grade.CHOSEN for name, target in targets.items() if _serves(target, key.namespace)}

    return policy


def of_endpoints(obj: Object, key: Key, context: PlacementContext) -> Intents:
    """In each target that has the global Service, except for the one that the endpoints are in."""
    if stamp.of(obj) is not None:
        return {}
    intents = in_every_target(lambda _: True)(obj, key, context)
    return (
        intents if isinstance(intents, Unknown) else {c: g for c, g in intents.items() if not _is_in(obj, context, c)}
    )


def _is_in(obj: Object, context: PlacementContext, cluster: str) -> bool:
    return target_link.of(context.links[cluster]).node == obj.labels.get(keys.ENDPOINTS_OF)


def _serves(target: TargetLink, namespace: str) -> bool:
    return target.takes(namespace) and not target.is_self and not target.is_leaving
