"""VirtualCluster with a pool of super clusters: the rules of `virtualcluster`, with other placements.

The objects of a namespace are in every super cluster where it is placed. A pod is in one of them, and a claim is where
its pods are.
"""

from dataclasses import replace

from hansa.kube import resources
from hansa.model import lifecycle, placement
from hansa.model.mode import Mode, Rule
from hansa.model.translation.tenant import classes, nodes
from hansa.model.translation.tenant import pooled as in_pool
from hansa.modes.virtualcluster_settings import PoolSettings


def pooled(table: Mode, pool: PoolSettings) -> Mode:
    """The rules from tenants to the super clusters of a pool."""
    rules = {resource: _pooled(rule, pool) for resource, rule in table.rules.items()}
    return replace(table, rules=rules, upper_node=nodes.tenant_node_name)


def pooled_shared(table: Mode) -> Mode:
    """The rules from super clusters to tenants. Of offered classes with the same name, the first is used for all."""
    rules = {
        resource: replace(rule, lifecycle=lifecycle.SHARED_COPY) if resource in _OFFERED else rule
        for resource, rule in table.rules.items()
    }
    return replace(table, rules=rules)


_OFFERED = frozenset({*classes.CLASSES, resources.CUSTOM_RESOURCE_DEFINITIONS})


def _merged(rule: Rule) -> Rule:
    """A rule whose status has parts of all super clusters where its namespace is placed."""
    return replace(rule, merges_statuses=True, reads=in_pool.NAMESPACE_READS)


def _pooled(rule: Rule, pool: PoolSettings) -> Rule:
    retained = replace(rule.lifecycle, retention=pool.retention)
    with_namespace = replace(rule, placement=in_pool.with_namespace, follows_namespace=True, lifecycle=retained)
    changed = rule
    match rule.resource:
        case (
            resources.CONFIG_MAPS
            | resources.SECRETS
            | resources.SERVICE_ACCOUNTS
            | resources.NETWORK_POLICIES
            | resources.POD_DISRUPTION_BUDGETS
        ):
            changed = with_namespace
        case resources.NAMESPACES:
            changed = replace(
                rule,
                placement=in_pool.namespace_placement,
                references=in_pool.namespace_references,
                needed_at=in_pool.decided_placement,
                lifecycle=retained,
            )
        case resources.PODS:
            changed = replace(
                rule,
                placement=in_pool.pod_placement,
                follows_namespace=True,
                references=in_pool.with_namespaces(rule.references),
                on_moved=in_pool.remove_moved_from,
            )
        case resources.PERSISTENT_VOLUME_CLAIMS:
            # A claim in every super cluster would get a volume in each. Once its pod has written data, it must stay.
            changed = replace(
                rule,
                placement=placement.with_users,
                lifecycle=lifecycle.DATA,
                up_patches=in_pool.claim_up_patches,
                merges_statuses=True,
            )
        case resources.SERVICES:
            down = (*rule.down, in_pool.without_selector) if pool.are_networks_joined else rule.down
            changed = replace(_merged(with_namespace), down=down, up_patches=in_pool.service_up_patches)
        case resources.INGRESSES:
            changed = replace(_merged(with_namespace), up_patches=in_pool.load_balancer_up_patches)
        case resources.ENDPOINT_SLICES:
            where = in_pool.endpoint_slice_placement(are_networks_joined=pool.are_networks_joined)
            changed = replace(with_namespace, placement=where)
    return changed
