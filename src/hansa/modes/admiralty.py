"""Admiralty's multicluster-scheduler: proxy pods of a source cluster run as delegates in target clusters.

The binder writes a candidate on each proxy pod; here the delegate follows it, then what the delegate refers to. Once a
target has scheduled the delegate, the proxy pod is bound to the virtual node of that target.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from hansa.control.content_budget import ContentBudget, OutlineBudget
from hansa.control.pace import Pace
from hansa.engine.cluster import Budgets
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys, lifecycle, placement
from hansa.model.limits import MIB
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Link
from hansa.model.translation.common import accounts, secrets, storage
from hansa.model.translation.common import services as common_services
from hansa.model.translation.common.pod import updates
from hansa.model.translation.federation import (
    checks,
    claims,
    endpoint_slices,
    exports,
    metadata,
    placements,
    reroute,
    services,
    target_link,
)
from hansa.model.translation.federation.pod import delegate, proxy
from hansa.modes.admiralty_settings import AdmiraltySettings

COPY = (metadata.copy,)
MOST_COPIES: Final = 100_000  # objects with our stamp in one target
MOST_BYTES: Final = 512 * MIB  # of these
PROXIES = f"spec.schedulerName={keys.PROXY_SCHEDULER}"  # a field selector; the field never changes


def target_budgets() -> Budgets:
    """The budgets of the caches of a target: it is another administrator's, and so are its users."""
    outlines = OutlineBudget(MOST_COPIES)
    content = ContentBudget(MOST_BYTES, outlines, is_strict=True)
    return Budgets(frozenset(), content, content, outlines, Pace())


def mode(settings: AdmiraltySettings) -> Mode:
    """The rules from a source cluster to its targets."""
    rules = (*_pods(), *_pod_dependencies(settings), *_global_kinds(), *_endpoints(settings))
    return Mode(
        "admiralty",
        {rule.resource: rule for rule in rules},
        lower_name=metadata.lower_name,
        mirrors_normal_events=False,  # they would be most of the writes of a pod's life
        upper_message=proxy.message,
        upper_node=lambda _node, link: target_link.of(link).node,
    )


def _pods() -> Iterable[Rule]:
    yield Rule(
        resources.PODS,
        fields=PROXIES,
        placement=placements.of_pod,
        lifecycle=proxy.LIFECYCLE,
        down=delegate.DOWN,
        on_create=updates.on_create,
        down_patches=delegate.down_patches,
        up_patches=proxy.up_patches,
        references=delegate.references_of,
        check=checks.of_pod,
        on_refused=proxy.refused,
        bound_node=placement.node_of,
        is_evicted=_is_evicted,
    )
    yield Rule(resources.NODES, selector=f"{keys.PROVIDER_TAINT}=admiralty")


def _pod_dependencies(settings: AdmiraltySettings) -> Iterable[Rule]:
    with_delegates = placements.in_other_clusters(placement.with_users)
    copied = replace(lifecycle.COPY, retention=settings.retention)
    yield Rule(
        resources.CONFIG_MAPS,
        down=COPY,
        down_patches=secrets.config_map_patches,
        lifecycle=copied,
        placement=with_delegates,
    )
    yield Rule(
        resources.SECRETS,
        down=(*COPY, secrets.secret),
        down_patches=secrets.secret_patches,
        lifecycle=copied,
        placement=with_delegates,
    )
    if settings.follows_service_accounts:
        yield Rule(
            resources.SERVICE_ACCOUNTS,
            down=(*COPY, accounts.service_account),
            lifecycle=lifecycle.SHARED_COPY,
            placement=with_delegates,
        )
    if settings.follows_claims:
        yield Rule(
            resources.PERSISTENT_VOLUME_CLAIMS,
            down=(*COPY, claims.claim),
            down_patches=storage.claim_patches,
            lifecycle=lifecycle.DATA,
            placement=with_delegates,
        )


def _global_kinds() -> Iterable[Rule]:
    in_targets = placements.in_every_target(reroute.is_global)
    yield Rule(
        resources.SERVICES,
        down=(metadata.global_copy, services.service),
        down_patches=services.service_patches,
        fallback=services.with_families_of_target,
        placement=in_targets,
    )
    yield Rule(
        resources.INGRESSES,
        down=(metadata.global_copy,),
        down_patches=services.ingress_patches,
        placement=in_targets,
    )


def _endpoints(settings: AdmiraltySettings) -> Iterable[Rule]:
    """EndpointSlices of global and of exported Services. Without both settings, copies from before are deleted."""
    has_any = settings.pod_networks or settings.exports_services
    yield Rule(
        resources.ENDPOINT_SLICES,
        selector=f"{keys.GLOBAL_SERVICE}=true",
        down=(*COPY, common_services.endpoint_slice),
        down_patches=common_services.endpoint_slice_patches,
        placement=placements.of_endpoints if has_any else placement.only_read,
        references=endpoint_slices.service_of,
    )
    if settings.exports_services:
        yield Rule(
            exports.SERVICE_IMPORTS,
            selector=f"{keys.GLOBAL_SERVICE}=true",
            down=(*COPY, exports.without_addresses),
            down_patches=exports.import_patches,
            placement=placements.of_endpoints,
        )


def _is_evicted(_proxy: Object, link: Link) -> bool:
    return target_link.of(link).is_leaving
