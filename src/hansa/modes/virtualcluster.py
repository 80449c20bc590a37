"""VirtualCluster: every tenant has a control plane of its own, and its pods run in one super cluster.

`mode` is the way down from tenants. `shared` turns the roles round: what the super cluster has for its tenants.
"""

from collections.abc import Iterable

from hansa.kube import resources
from hansa.model import keys, lifecycle, placement
from hansa.model.mode import Mode, Rule
from hansa.model.translation import accounts, configuration, ingress, marking, storage
from hansa.model.translation import services as any_services
from hansa.model.translation.pod import following, refusal
from hansa.model.translation.tenant import classes, metadata, namespaces, nodes, pod, policies, services, telling
from hansa.model.translation.tenant import configuration as tenant_configuration
from hansa.model.translation.tenant import storage as tenant_storage
from hansa.model.translation.tenant.pod import guard, readiness, variables
from hansa.modes import virtualcluster_pool
from hansa.modes.virtualcluster_settings import Extra, Settings


def mode(settings: Settings) -> Mode:
    """The table for these settings: tenants above, the super cluster below."""
    rules = (*_namespaces_and_pods(), *_services(), *_what_pods_refer_to(), *_extra(settings), *_looked_up())
    table = Mode(
        "virtualcluster",
        {rule.resource: rule for rule in rules},
        lower_place=namespaces.lower_place,
        shares_lowers=True,
        retold=telling.retold,
    )
    return table if settings.pool is None else virtualcluster_pool.pooled(table, settings.pool)


def shared(settings: Settings) -> Mode:
    """What the super cluster has for its tenants. Its routes lead from the super cluster to them."""
    rules = {rule.resource: rule for rule in (*_volumes(), *_nodes(settings), *_offered())}
    table = Mode("virtualcluster shared", rules, lower_place=nodes.place)
    return table if settings.pool is None else virtualcluster_pool.pooled_shared(table)


def _namespaces_and_pods() -> Iterable[Rule]:
    yield Rule(
        resources.NAMESPACES,
        down=(namespaces.namespace,),
        lifecycle=lifecycle.NAMESPACE,
        placement=placement.everywhere,
    )
    yield Rule(
        resources.PODS,
        down=pod.DOWN,
        at_birth=following.at_birth,
        down_patches=pod.down_patches,
        up_patches=metadata.also(pod.up_patches),
        lifecycle=pod.LIFE,
        placement=pod.ungated,
        references=pod.needs,
        check=guard.check,
        refused=refusal.unscheduled,
        binds=placement.node_of,
        queues=pod.unscheduled,
        status_down=readiness.opened,
    )


def _services() -> Iterable[Rule]:
    yield Rule(
        resources.SERVICES,
        down=(metadata.own, services.service),
        down_patches=services.service_patches,
        up_patches=services.service_told,
        placement=placement.everywhere,
        references=services.own_endpoints,
        check=services.check,
        yields=services.yields,
    )
    yield Rule(
        resources.ENDPOINTS,
        down=(metadata.own, services.endpoints),
        down_patches=services.endpoints_patches,
        placement=placement.with_users,
    )
    yield Rule(
        resources.ENDPOINT_SLICES,
        down=(metadata.own, any_services.endpoint_slice),
        down_patches=any_services.endpoint_slice_patches,
        placement=services.slices_of_users,
    )


def _what_pods_refer_to() -> Iterable[Rule]:
    yield Rule(
        resources.CONFIG_MAPS,
        down=(metadata.own, variables.fill_table),
        down_patches=configuration.config_map_patches,
        placement=placement.everywhere,
        made_of=variables.made_of,
    )
    yield Rule(
        resources.SECRETS,
        down=(metadata.own, tenant_configuration.secret),
        down_patches=configuration.secret_patches,
        placement=placement.everywhere,
    )
    yield Rule(
        resources.SERVICE_ACCOUNTS,
        down=(metadata.own, accounts.service_account),
        lifecycle=tenant_configuration.ACCOUNT,
        placement=placement.everywhere,
    )
    yield Rule(
        resources.PERSISTENT_VOLUME_CLAIMS,
        down=(metadata.own, tenant_storage.claim),
        down_patches=storage.claim_patches,
        up_patches=metadata.also(storage.claim_told),
        placement=placement.everywhere,
        references=tenant_storage.source_of,
    )


def _extra(settings: Settings) -> Iterable[Rule]:
    if Extra.INGRESS in settings.extra:
        yield Rule(
            resources.INGRESSES,
            down=(metadata.own,),
            down_patches=ingress.ingress_patches,
            up_patches=metadata.also(ingress.ingress_told),
            placement=placement.everywhere,
        )
    if Extra.NETWORK_POLICY in settings.extra:
        yield Rule(
            resources.NETWORK_POLICIES,
            down=(metadata.own, policies.network_policy),
            down_patches=policies.network_policy_patches,
            placement=placement.everywhere,
        )


def _looked_up() -> Iterable[Rule]:
    """What does not travel this way: nodes that a pod may be bound to, and which classes the super cluster offers."""
    yield Rule(resources.NODES)
    yield Rule(resources.PRIORITY_CLASSES, lifecycle=lifecycle.SHARED_COPY, placement=placement.seen_below)


def _volumes() -> Iterable[Rule]:
    yield Rule(
        resources.PERSISTENT_VOLUME_CLAIMS,
        references=tenant_storage.volume_of,
        needed_at=metadata.with_its_tenant,
        watched=keys.UPPER,
    )
    yield Rule(
        resources.PERSISTENT_VOLUMES,
        down=(tenant_storage.volume,),
        down_patches=storage.volume_patches,
        placement=placement.with_users,
    )


def _nodes(settings: Settings) -> Iterable[Rule]:
    lingering = lifecycle.Lifecycle(lingers=settings.nodes_linger)
    yield Rule(
        resources.PODS,
        references=nodes.of_pod,
        needed_at=metadata.with_its_tenant,
        watched=keys.UPPER,
    )
    yield Rule(
        resources.NODES,
        down=(nodes.virtual(settings.nodes),),
        down_patches=nodes.patches(settings.nodes),
        lifecycle=lingering,
        placement=placement.with_users,
        status_down=nodes.told,
    )
    yield Rule(
        resources.LEASES,
        down=(nodes.lease,),
        down_patches=nodes.lease_patches,
        lifecycle=lingering,
        placement=placement.with_users,
    )


def _offered() -> Iterable[Rule]:
    for resource, steps, patches in (
        (resources.STORAGE_CLASSES, (), classes.storage_class_patches),
        (resources.PRIORITY_CLASSES, (), classes.priority_class_patches),
        (resources.CUSTOM_RESOURCE_DEFINITIONS, (classes.definition,), classes.definition_patches),
    ):
        yield Rule(
            resource,
            down=(marking.leave_notes_behind, *steps),
            down_patches=patches,
            placement=classes.public,
            watched=classes.PUBLIC,
        )
