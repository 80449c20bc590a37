"""tensile's mutations: what the webhook of an upper cluster changes in a pod that is created there.

First the pod's constraints on lower nodes move into the annotation `clusterSelector`, then a pod with bound claims
requires the virtual node of the cluster that has their volumes. Pods of an owner that the descheduler moved avoid the
clusters that could not schedule them.
"""

import functools

from hansa.admission import claim_affinity, constraints, exemption, refused_nodes
from hansa.admission.constraint_split import VIRTUAL, UpperNodes
from hansa.admission.mutation import Caches, Json, Mutation, Request
from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys, refused_owners
from hansa.runtime.clock import Clock


def mutations(upper_label_keys: frozenset[str], clock: Clock) -> tuple[Mutation, ...]:
    """In the order in which they apply. Constraints on the labels given stay in the pod's spec."""
    return (
        Mutation(
            name="cluster-selector",
            resources=(resources.PODS,),
            selection=exemption.selection(),
            reads=(resources.NODES,),
            mutate=functools.partial(_move_constraints, upper_label_keys),
        ),
        Mutation(
            name="claim-affinity",
            resources=(resources.PODS,),
            selection=exemption.selection(),
            reads=(resources.NODES, resources.PERSISTENT_VOLUME_CLAIMS, resources.PERSISTENT_VOLUMES),
            mutate=_require_node_of_claims,
        ),
        Mutation(
            name="refused-nodes",
            resources=(resources.PODS,),
            selection=exemption.selection(),
            reads=(resources.NODES,),
            mutate=functools.partial(_avoid_refused_nodes, clock),
        ),
    )


def _move_constraints(upper_label_keys: frozenset[str], request: Request, caches: Caches) -> Json:
    upper = UpperNodes(upper_label_keys, lambda name: _find(caches, resources.NODES, name) is not None)
    return constraints.move_constraints(request.object, upper)


def _require_node_of_claims(request: Request, caches: Caches) -> Json:
    def is_virtual(name: str) -> bool:
        node = _find(caches, resources.NODES, name)
        return node is not None and node.labels.get(keys.VIRTUAL_KUBELET_TYPE) == VIRTUAL

    node = claim_affinity.node_of_claims(
        request.object,
        claim=lambda name: _find(caches, resources.PERSISTENT_VOLUME_CLAIMS, name, request.namespace),
        volume=lambda name: _find(caches, resources.PERSISTENT_VOLUMES, name),
        is_virtual=is_virtual,
    )
    return claim_affinity.require_node(request.object, node)


def _avoid_refused_nodes(clock: Clock, request: Request, caches: Caches) -> Json:
    if not (owner := refused_nodes.owner_of(request.object)):
        return request.object
    now, nodes = clock.wall(), caches[resources.NODES].values()
    return refused_nodes.avoid(
        request.object, sorted(node.name for node in nodes if owner in refused_owners.of(node, now))
    )


def _find(caches: Caches, resource: Resource, name: str, namespace: str = "") -> Object | None:
    return caches[resource].get(NamespacedName(namespace, name))
