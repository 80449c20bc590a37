"""tensile-kube: one upper cluster, many lower clusters, a virtual node for each. Pods run where their node stands for.

`mode` is the way down; `volumes` turns the roles round: what a lower cluster makes for our claims appears above.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import lifecycle, placement, references, role_bindings
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Key, Link
from hansa.model.references import Reference
from hansa.model.translation.common import accounts, names, object_metadata, secrets, services, storage
from hansa.model.translation.common.pod import status, updates
from hansa.model.translation.tensile import pod
from hansa.modes.tensile_settings import Controllers, TensileSettings

COPY = (object_metadata.leave_notes_behind, object_metadata.mark_global)


def mode(settings: TensileSettings) -> Mode:
    """The table for these settings."""
    rules = [*_pods(settings), *_what_pods_refer_to(is_told=Controllers.VOLUMES in settings.controllers)]
    if Controllers.RIGHTS in settings.controllers:
        rules += _rights()
    if Controllers.SERVICES in settings.controllers:
        rules += _services(settings)
    return Mode(
        name="tensile",
        rules={rule.resource: rule for rule in rules},
        lower_name=_lower_name,
        mints_tokens=True,
        creates_namespaces=True,
    )


def volumes(upper_id: str) -> Mode:
    """Volumes of the claims that are copies of this upper cluster's. Its routes lead from the lower clusters up."""
    rules = (
        Rule(
            resources.PERSISTENT_VOLUME_CLAIMS,
            references=_volume_of,
            needed_at=placement.if_stamped(upper_id, placement.everywhere),
        ),
        Rule(
            resources.PERSISTENT_VOLUMES,
            down=(*COPY, storage.volume),
            down_patches=storage.volume_patches,
            placement=placement.with_users,
        ),
    )
    return Mode(name="tensile volumes", rules={rule.resource: rule for rule in rules})


def _pods(settings: TensileSettings) -> Iterable[Rule]:
    yield Rule(
        resources.PODS,
        down=pod.DOWN,
        on_create=updates.on_create,
        down_patches=updates.down_patches,
        up_patches=status.up_patches,
        lifecycle=lifecycle.POD,
        placement=placement.outside(
            lambda key: key.namespace in settings.excluded_namespaces,
            placement.by_node_name,
        ),
        references=references.objects_of_pod,
    )


def _what_pods_refer_to(*, is_told: bool) -> Iterable[Rule]:
    yield Rule(
        resources.CONFIG_MAPS,
        down=COPY,
        down_patches=secrets.config_map_patches,
        placement=placement.with_users,
    )
    yield Rule(
        resources.SECRETS,
        down=(*COPY, secrets.secret),
        down_patches=secrets.secret_patches,
        placement=placement.with_users,
    )
    yield Rule(
        resources.SERVICE_ACCOUNTS,
        down=(*COPY, accounts.service_account),
        lifecycle=lifecycle.SHARED_COPY,
        placement=placement.with_users,
    )
    claims = Rule(
        resources.PERSISTENT_VOLUME_CLAIMS,
        down=(*COPY, storage.claim),
        down_patches=storage.claim_patches,
        lifecycle=lifecycle.DATA,
        placement=placement.with_users,
    )
    yield replace(claims, up_patches=storage.claim_up_patches_on_node) if is_told else claims


def _rights() -> Iterable[Rule]:
    yield Rule(
        resources.ROLES,
        down=COPY,
        down_patches=accounts.role_patches,
        placement=placement.with_users,
    )
    yield Rule(
        resources.ROLE_BINDINGS,
        down=(*COPY, accounts.role_binding),
        down_patches=accounts.role_binding_patches,
        placement=placement.with_users_of(role_bindings.accounts),
        references=role_bindings.role,
        placed_with=role_bindings.accounts,
    )


def _services(settings: TensileSettings) -> Iterable[Rule]:
    everywhere = placement.outside(
        lambda key: (
            key.namespace in settings.excluded_namespaces
            or (_is_of_the_system(key) and not settings.carries_system_services)
        ),
        placement.everywhere,
    )
    yield Rule(
        resources.SERVICES,
        down=(*COPY, services.service),
        down_patches=services.service_patches,
        placement=everywhere,
    )
    yield Rule(
        resources.ENDPOINT_SLICES,
        down=(*COPY, services.endpoint_slice),
        down_patches=services.endpoint_slice_patches,
        placement=everywhere,
    )


def _is_of_the_system(key: Key) -> bool:
    """Every cluster has these for itself; the API server's EndpointSlice is named as its service."""
    return key.namespace == "kube-system" or (key.namespace, key.name) == ("default", "kubernetes")


def _lower_name(key: Key, _uid: str, link: Link) -> NamespacedName:
    """The same namespace and name, but for what every cluster has of its own under that name."""
    return NamespacedName(key.namespace, names.lower_name(key.resource, key.name, upper_id=link.upper_id))


def _volume_of(claim: Object) -> Iterator[Reference]:
    if name := claim.spec.get("volumeName"):
        yield Reference(resources.PERSISTENT_VOLUMES, "", name)
