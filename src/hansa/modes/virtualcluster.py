"""VirtualCluster: every tenant has a control plane of its own, and its pods run in the super cluster.

`mode` syncs tenants' objects to the super cluster. `shared` syncs the other way: nodes, volumes and offered classes of
the super cluster to its tenants. What a pool of super clusters changes is in `virtualcluster_pool`.
"""

from collections.abc import Iterable
from dataclasses import replace

from hansa.control.content_budget import ContentBudget, OutlineBudget
from hansa.control.pace import Pace
from hansa.engine.cluster import Budgets, Cluster
from hansa.engine.registry import Route
from hansa.kube import resources
from hansa.model import keys, lifecycle, placement
from hansa.model.limits import DEFAULT_LIMITS, MIB
from hansa.model.mode import Mode, Rule
from hansa.model.translation.common import accounts, ingress, object_metadata, secrets, storage
from hansa.model.translation.common import services as common_services
from hansa.model.translation.common.pod import unschedulable, updates
from hansa.model.translation.tenant import (
    claims,
    classes,
    disruption_budgets,
    ingresses,
    isolation,
    messages,
    metadata,
    namespaces,
    network_policies,
    nodes,
    pod,
    services,
    tenant_settings,
    user_endpoints,
)
from hansa.model.translation.tenant import secrets as tenant_secrets
from hansa.model.translation.tenant import storage as tenant_storage
from hansa.model.translation.tenant.pod import environment, readiness, restrictions
from hansa.model.translation.tenant.tenant_settings import TenantSettings
from hansa.modes import virtualcluster_pool
from hansa.modes.virtualcluster_settings import VirtualClusterSettings

# Of ConfigMaps and Secrets, this many bytes of a tenant are cached; the content of others is read when it is needed.
CONTENT = 16 * MIB
# Of all other kinds: so many times the limit of the bytes of copies. What exceeds it is not synced.
CONTENT_FACTOR = 4
# Objects of all kinds that may be in a tenant's control plane: so many times the limit of the number of copies. An
# outline of each one is cached; of a kind with more, nothing is synced.
OUTLINES_FACTOR = 5
UNUSED_LAST = frozenset({resources.CONFIG_MAPS, resources.SECRETS})


def budgets() -> Budgets:
    """The budgets of a tenant's caches, before its limits are known."""
    outlines = OutlineBudget(OUTLINES_FACTOR * DEFAULT_LIMITS.objects)
    large = ContentBudget(CONTENT_FACTOR * DEFAULT_LIMITS.bytes, outlines)
    return Budgets(UNUSED_LAST, ContentBudget(CONTENT, outlines), large, outlines, Pace())


def bound(tenant: Cluster, routes: Iterable[Route]) -> None:
    """Set the budget of a tenant's caches, and how many requests may be in flight to it, by its limits."""
    limits = [route.settings.limits for route in routes if isinstance(route.settings, TenantSettings)]
    if not limits:
        return
    tenant.inflight.most = max(1, *(one.requests for one in limits))
    if tenant.budgets is not None:
        tenant.budgets.large.most = CONTENT_FACTOR * max(DEFAULT_LIMITS.bytes, *(one.bytes for one in limits))
        copies = max(DEFAULT_LIMITS.objects, *(one.objects for one in limits))
        tenant.budgets.outlines.most = OUTLINES_FACTOR * copies


def mode(settings: VirtualClusterSettings) -> Mode:
    """Tenants are upper clusters, the super cluster is the lower one."""
    rules = (
        *_namespaces_and_pods(settings),
        *_services(),
        *_pod_dependencies(),
        *_traffic_and_disruption(settings),
        *_read_only(),
    )
    table = Mode(
        "virtualcluster",
        {rule.resource: rule for rule in rules},
        lower_name=namespaces.lower_name,
        shares_lowers=True,
        mints_tokens=True,
        upper_message=messages.tenant_message,
        limits_of=tenant_settings.limits_of,
    )
    return _with_unused_last(table if settings.pool is None else virtualcluster_pool.pooled(table, settings.pool))


def shared(settings: VirtualClusterSettings) -> Mode:
    """The super cluster is the upper cluster, tenants are lower ones."""
    rules = {rule.resource: rule for rule in (*_volumes(), *_nodes(settings), *_offered())}
    table = Mode("virtualcluster-shared", rules, lower_name=nodes.tenant_name, creates_namespaces=True)
    return table if settings.pool is None else virtualcluster_pool.pooled_shared(table)


def _with_unused_last(table: Mode) -> Mode:
    """ConfigMaps and Secrets are where nothing may refer to them: such ones wait for others, or are not synced."""
    changed = {}
    for resource in UNUSED_LAST:
        rule = table.rules[resource]
        placed = None if rule.placement is None else tenant_settings.if_used(rule.placement)
        changed[resource] = replace(rule, placement=placed, unused_last=True)
    return replace(table, rules={**table.rules, **changed})


def _namespaces_and_pods(settings: VirtualClusterSettings) -> Iterable[Rule]:
    yield Rule(
        resources.NAMESPACES,
        down=(namespaces.namespace,),
        lifecycle=lifecycle.NAMESPACE,
        placement=placement.everywhere,
    )
    yield Rule(
        resources.PODS,
        down=pod.DOWN,
        on_create=updates.on_create,
        down_patches=pod.down_patches,
        up_patches=metadata.with_transparent_metadata(pod.up_patches),
        lifecycle=pod.LIFECYCLE,
        placement=pod.unless_gated,
        references=isolation.with_policies(pod.required_objects) if settings.isolates else pod.required_objects,
        reads=pod.READS,
        selected_by=pod.SELECTED_BY,
        check=restrictions.check,
        on_refused=unschedulable.unscheduled,
        bound_node=placement.node_of,
        pending_of=pod.awaiting_scheduler,
        status_down=readiness.gate_conditions,
    )


def _services() -> Iterable[Rule]:
    yield Rule(
        resources.SERVICES,
        down=(metadata.tenant_metadata, services.service),
        down_patches=services.service_patches,
        up_patches=services.service_up_patches,
        placement=placement.everywhere,
        references=services.user_endpoints,
        check=services.check,
        fallback=services.reallocated,
    )
    yield Rule(
        resources.ENDPOINTS,
        down=(metadata.tenant_metadata, user_endpoints.admitted_endpoints, services.endpoints),
        down_patches=services.endpoints_patches,
        placement=placement.with_users,
        omitted=user_endpoints.omitted,
        computed_from=user_endpoints.pods_of_namespace,
        reads=user_endpoints.READS,
    )
    yield Rule(
        resources.ENDPOINT_SLICES,
        down=(metadata.tenant_metadata, user_endpoints.admitted_slice, common_services.endpoint_slice),
        down_patches=common_services.endpoint_slice_patches,
        placement=services.user_slice_placement,
        omitted=user_endpoints.omitted,
        computed_from=user_endpoints.pods_of_namespace,
        reads=user_endpoints.READS,
    )


def _pod_dependencies() -> Iterable[Rule]:
    yield Rule(
        resources.CONFIG_MAPS,
        down=(metadata.tenant_metadata, environment.fill_config_map),
        down_patches=secrets.config_map_patches,
        placement=placement.everywhere,
        computed_from=environment.config_map_sources,
        reads=environment.CONFIG_MAP_READS,
    )
    yield Rule(
        resources.SECRETS,
        down=(metadata.tenant_metadata, tenant_secrets.secret),
        down_patches=secrets.secret_patches,
        placement=placement.everywhere,
    )
    yield Rule(
        resources.SERVICE_ACCOUNTS,
        down=(metadata.tenant_metadata, accounts.service_account),
        lifecycle=tenant_secrets.SERVICE_ACCOUNT_LIFECYCLE,
        placement=placement.everywhere,
    )
    yield Rule(
        resources.PERSISTENT_VOLUME_CLAIMS,
        down=(metadata.tenant_metadata, tenant_storage.claim),
        down_patches=storage.claim_patches,
        up_patches=metadata.with_transparent_metadata(storage.claim_up_patches),
        placement=placement.everywhere,
        references=tenant_storage.source_of,
        reads=claims.READS,
        check=claims.check,
    )


def _traffic_and_disruption(settings: VirtualClusterSettings) -> Iterable[Rule]:
    yield Rule(
        resources.INGRESSES,
        down=(ingresses.name_class, metadata.tenant_metadata),
        down_patches=ingress.ingress_patches,
        up_patches=metadata.with_transparent_metadata(ingress.ingress_up_patches),
        placement=placement.everywhere,
        references=ingresses.secrets,
        reads=ingresses.READS,
        check=ingresses.check,
    )
    yield Rule(
        resources.NETWORK_POLICIES,
        down=(metadata.tenant_metadata, network_policies.network_policy),
        down_patches=network_policies.network_policy_patches,
        placement=placement.everywhere,
        outlives=isolation.outlived if settings.isolates else lambda _: None,
    )
    yield Rule(
        resources.POD_DISRUPTION_BUDGETS,
        down=(metadata.tenant_metadata, disruption_budgets.budget),
        down_patches=disruption_budgets.budget_patches,
        placement=placement.everywhere,
        status_down=disruption_budgets.counts,
        reads=disruption_budgets.READS,
    )


def _read_only() -> Iterable[Rule]:
    """Kinds that are only looked up: nodes that a pod may be bound to, and classes and volumes of the super cluster."""
    yield Rule(resources.NODES)
    for resource in (*classes.CLASSES, resources.PERSISTENT_VOLUMES):
        yield Rule(resource, lifecycle=lifecycle.SHARED_COPY, placement=placement.only_read)


def _volumes() -> Iterable[Rule]:
    yield Rule(
        resources.PERSISTENT_VOLUME_CLAIMS,
        references=tenant_storage.volume_of,
        needed_at=tenant_storage.where_bound,
        selector=keys.UPPER,
    )
    yield Rule(
        resources.PERSISTENT_VOLUMES,
        down=(tenant_storage.volume,),
        reads=tenant_storage.VOLUME_READS,
        check=tenant_storage.unbound,
        down_patches=storage.volume_patches,
        placement=placement.with_users,
    )


def _nodes(settings: VirtualClusterSettings) -> Iterable[Rule]:
    retained = lifecycle.Lifecycle(retention=settings.node_retention)
    yield Rule(
        resources.PODS,
        references=nodes.node_references,
        needed_at=metadata.in_owning_tenant,
        selector=keys.UPPER,
    )
    yield Rule(
        resources.NODES,
        down=(nodes.virtual_node(settings.nodes),),
        down_patches=nodes.node_patches(settings.nodes),
        lifecycle=retained,
        placement=placement.with_users,
        status_down=nodes.node_status,
    )
    yield Rule(
        resources.LEASES,
        down=(nodes.node_lease,),
        down_patches=nodes.lease_patches,
        lifecycle=retained,
        placement=placement.with_users,
    )


def _offered() -> Iterable[Rule]:
    for resource, steps, patches in (
        (resources.STORAGE_CLASSES, (), classes.storage_class_patches),
        (resources.PRIORITY_CLASSES, (), classes.priority_class_patches),
        (resources.RUNTIME_CLASSES, (classes.runtime_class,), classes.runtime_class_patches),
        (resources.INGRESS_CLASSES, (classes.ingress_class,), classes.ingress_class_patches),
    ):
        yield Rule(
            resource,
            down=(object_metadata.drop_upper_annotations, classes.without_offer, *steps),
            down_patches=patches,
            placement=classes.where_offered,
        )
    yield Rule(
        resources.CUSTOM_RESOURCE_DEFINITIONS,
        down=(object_metadata.drop_upper_annotations, classes.definition_without_conversion),
        down_patches=classes.definition_patches,
        placement=classes.where_public,
        selector=classes.PUBLIC_SELECTOR,
    )
