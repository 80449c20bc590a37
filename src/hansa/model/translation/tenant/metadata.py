"""Which labels and annotations are synced between a tenant and the super cluster, and which Hansa adds.

Labels are copied to the super cluster, because Services select pods by them, but for those that its controllers obey.
Annotations configure controllers, so only those of a list are copied (docs/decisions/0008).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from hansa.kube.objects import Object
from hansa.model import keys, stamp, tenant_names
from hansa.model.mode import PatchPart, UpPatches
from hansa.model.pair import Grade, Key, Link
from hansa.model.placement import Intents, PlacementContext
from hansa.model.translation.tenant import key_patterns, tenant_settings
from hansa.model.translation.tenant.tenant_settings import TenantSettings

_RESERVED_PREFIXES: Final = (keys.TENANCY, keys.TRANSPARENCY, keys.NAMESPACE_LABEL)
_SYNCED_DOMAINS: Final = frozenset({*keys.POOL, keys.DOWNWARD})
_NEVER_SYNCED: Final = frozenset({keys.LOWER_UID, "kubectl.kubernetes.io/last-applied-configuration"})


def tenant_metadata(obj: Object, link: Link) -> Object:
    """The metadata of a copy: the labels and annotations that may be synced, and VirtualCluster's owner annotations."""
    tenant = tenant_settings.of(link)
    labels = {key: value for key, value in obj.labels.items() if not is_opaque_label(key, tenant)}
    return obj.with_metadata(
        labels=labels | vc_labels(tenant),
        annotations=lower_annotations(obj, tenant)
        | vc_annotations(tenant)
        | {
            keys.TENANT_UID: obj.uid,
            keys.TENANT_NAMESPACE: obj.namespace,
            keys.TENANT_OWNERS: _owners(obj),
        },
    )


def lower_annotations(obj: Object, tenant: TenantSettings) -> dict[str, str]:
    """The annotations that are copied to the super cluster."""
    found = obj.annotations.items()
    return {key: value for key, value in found if not is_opaque_annotation(key, tenant, kind=obj.kind)}


def is_opaque_label(key: str, tenant: TenantSettings) -> bool:
    """Whether a label is not copied: it is reserved, controllers obey it, or the VirtualCluster's spec names it."""
    return _is_reserved(key, tenant) or key_patterns.of_kind(tenant.opaque_labels, "").match(key)


def is_opaque_annotation(key: str, tenant: TenantSettings, *, kind: str = "Pod") -> bool:
    """Whether an annotation is not copied: it is reserved, or not in the list of synced annotations."""
    if key in _NEVER_SYNCED or _is_reserved(key, tenant):
        return True
    domain, slash, _ = key.partition("/")
    if domain in _SYNCED_DOMAINS:
        return False
    synced = key_patterns.of_kind(tenant.lists.synced_annotations, kind)
    is_any = synced.has_any and not (slash and domain.endswith(tenant.opaque_domains))
    return not (is_any or synced.match(key))


def _is_reserved(key: str, tenant: TenantSettings) -> bool:
    """Whether a key is ours, opaque by the VirtualCluster's spec, or synced up."""
    return key.startswith((*_RESERVED_PREFIXES, *tenant.opaque_prefixes, *tenant.transparent_prefixes))


def is_reserved(key: str) -> bool:
    """Whether a label or annotation is ours, and never the tenant's."""
    return key.startswith(_RESERVED_PREFIXES)


def vc_annotations(tenant: TenantSettings) -> dict[str, str]:
    """The annotations that name the VirtualCluster of a copy."""
    return {keys.TENANT_CLUSTER: tenant.key, keys.VC_NAME: tenant.name, keys.VC_NAMESPACE: tenant.namespace}


def vc_labels(tenant: TenantSettings) -> dict[str, str]:
    """The same as labels, for selectors. The name is shortened: a label value holds 63 characters, a name 253."""
    return {keys.VC_NAME: tenant_names.shortened(tenant.name), keys.VC_NAMESPACE: tenant.namespace}


def in_owning_tenant(obj: Object, _key: Key, context: PlacementContext) -> Intents:
    """Placement for the way up: a copy is needed in the tenant that it belongs to. Clusters are named by tenant key."""
    key = obj.annotations.get(keys.TENANT_CLUSTER, "")
    return {key: Grade.CHOSEN} if stamp.of(obj) is not None and key in context.lowers else {}


def transparent_patches(upper: Object, lower: Object, link: Link) -> Iterator[PatchPart]:
    """Patches that add the transparent labels and annotations of the lower object to the upper one; none is removed."""
    prefixes = (keys.TRANSPARENCY, *tenant_settings.of(link).transparent_prefixes)
    metadata: dict[str, Any] = {
        name: changed
        for name, have, wanted in (
            ("labels", upper.labels, lower.labels),
            ("annotations", upper.annotations, lower.annotations),
        )
        if (changed := _changed(have, wanted, prefixes))
    }
    if metadata:
        yield PatchPart({"metadata": metadata})


def with_transparent_metadata(up_patches: UpPatches) -> UpPatches:
    """The patches of a kind, and those for transparent labels and annotations."""

    def both(upper: Object, lower: Object, link: Link) -> Iterator[PatchPart]:
        yield from up_patches(upper, lower, link)
        yield from transparent_patches(upper, lower, link)

    return both


def _changed(have: Mapping[str, str], wanted: Mapping[str, str], prefixes: Iterable[str]) -> dict[str, str]:
    starts = tuple(prefixes)
    return {key: value for key, value in wanted.items() if key.startswith(starts) and have.get(key) != value}


def _owners(obj: Object) -> str:
    owners = obj.metadata.owner_references
    return msgspec.json.encode(owners).decode() if owners else "null"
