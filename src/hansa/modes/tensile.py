"""tensile-kube: one upper cluster, and lower clusters that each have a virtual node in it. Pods bound to it run there.

`mode` syncs objects down. `volumes` syncs the PersistentVolumes of lower clusters up.
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

COPY = (object_metadata.drop_upper_annotations, object_metadata.mark_global)


def mode(settings: TensileSettings) -> Mode:
    """The rules for these settings."""
    rules = [*_pods(settings), *_pod_dependencies(syncs_volumes=Controllers.VOLUMES in settings.controllers)]
    if Controllers.RIGHTS in settings.controllers:
        rules += _rbac()
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
    """The rules for volumes of claims that are copies of this upper cluster's. Routes lead upwards."""
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
            reads=storage.VOLUME_READS,
            check=storage.unbound,
        ),
    )
    return Mode(name="tensile-volumes", rules={rule.resource: rule for rule in rules})


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


def _pod_dependencies(*, syncs_volumes: bool) -> Iterable[Rule]:
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
    yield replace(claims, up_patches=storage.claim_up_patches_on_node) if syncs_volumes else claims


def _rbac() -> Iterable[Rule]:
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
            or (_is_system_service(key) and not settings.syncs_system_services)
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


def _is_system_service(key: Key) -> bool:
    """Services that every cluster has itself; the API server's EndpointSlice has the name of its Service."""
    return key.namespace == "kube-system" or (key.namespace, key.name) == ("default", "kubernetes")


def _lower_name(key: Key, _uid: str, link: Link) -> NamespacedName:
    """The same namespace and name, except for objects that every cluster creates under that name."""
    return NamespacedName(key.namespace, names.lower_name(key.resource, key.name, upper_id=link.upper_id))


def _volume_of(claim: Object) -> Iterator[Reference]:
    if name := claim.spec.get("volumeName"):
        yield Reference(resources.PERSISTENT_VOLUMES, "", name)
