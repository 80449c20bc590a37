"""VirtualCluster with a pool of super clusters: the same tables, with what placements change in them.

All of a namespace is in every super cluster where it is placed; a pod is in one, and claims are where their pods are.
"""

from dataclasses import replace

from hansa.kube import resources
from hansa.model import lifecycle, placement
from hansa.model.mode import Mode, Rule
from hansa.model.translation.tenant import nodes, pooling
from hansa.modes.virtualcluster_settings import Pool


def pooled(table: Mode, pool: Pool) -> Mode:
    """The way down, for a pool."""
    rules = {resource: _pooled(rule, pool) for resource, rule in table.rules.items()}
    return replace(table, rules=rules, upper_node=nodes.name_above)


def pooled_shared(table: Mode) -> Mode:
    """What super clusters have for their tenants: of classes of one name, the first that comes serves for all."""
    rules = {
        resource: replace(rule, lifecycle=lifecycle.SHARED_COPY) if resource in _OFFERED else rule
        for resource, rule in table.rules.items()
    }
    return replace(table, rules=rules)


_OFFERED = (resources.STORAGE_CLASSES, resources.PRIORITY_CLASSES, resources.CUSTOM_RESOURCE_DEFINITIONS)


def _pooled(rule: Rule, pool: Pool) -> Rule:
    lingering = replace(rule.lifecycle, lingers=pool.lingers)
    anywhere = replace(rule, placement=placement.with_namespace, goes_with_namespace=True, lifecycle=lingering)
    changed = anywhere if rule.placement is placement.everywhere else rule
    match rule.resource:
        case resources.NAMESPACES:
            where = replace(rule, placement=pooling.of_namespace, lifecycle=lingering)
            changed = replace(where, references=pooling.needs_of_namespace, needed_at=pooling.placed)
        case resources.PODS:
            where = replace(rule, placement=pooling.of_pod, goes_with_namespace=True)
            changed = replace(where, references=pooling.needs_of_pod, handed_over=pooling.handed_over)
        case resources.PERSISTENT_VOLUME_CLAIMS:
            # A claim in every super cluster would get a volume in each; the one that its pod fills has to stay.
            where = replace(rule, placement=placement.with_users, lifecycle=lifecycle.DATA)
            changed = replace(where, up_patches=pooling.claim_told, all_tell=True)
        case resources.SERVICES:
            down = (*rule.down, pooling.unselecting) if pool.are_networks_joined else rule.down
            changed = replace(anywhere, down=down, up_patches=pooling.service_told, all_tell=True)
        case resources.INGRESSES:
            changed = replace(anywhere, up_patches=pooling.balancers_told, all_tell=True)
        case resources.ENDPOINT_SLICES:
            changed = replace(anywhere, placement=pooling.slices(are_networks_joined=pool.are_networks_joined))
    return changed
