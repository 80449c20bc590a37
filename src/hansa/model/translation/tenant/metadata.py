"""Labels and annotations between a tenant and the super cluster: which stay above, which come up, which are ours.

Labels go down as they are, because Services select pods by them; annotations steer whoever reads them, so those of
Kubernetes' own domains stay above. docs/decisions/0008 argues it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from hansa.kube.objects import Object
from hansa.model import keys, naming, stamp
from hansa.model.mode import Part, UpPatches
from hansa.model.pair import Grade, Key, Link
from hansa.model.placement import Facts, Intents
from hansa.model.translation.tenant import settings
from hansa.model.translation.tenant.settings import Tenant

_OURS: Final = (keys.TENANCY, keys.TRANSPARENCY, keys.NAMESPACE_LABEL)
_DOWN_ANYWAY: Final = frozenset({*keys.POOL, keys.DOWNWARD})
_NOTES: Final = frozenset({keys.LOWER_UID, "kubectl.kubernetes.io/last-applied-configuration"})


def own(obj: Object, link: Link) -> Object:
    """A copy of a tenant's object: what may go down, and whose it is in VirtualCluster's words."""
    tenant = settings.of(link)
    labels = {key: value for key, value in obj.labels.items() if not is_kept_above(key, tenant)}
    return obj.with_metadata(
        labels=labels | vc_labels(tenant),
        annotations=lower_annotations(obj.annotations, tenant)
        | vc_annotations(tenant)
        | {
            keys.TENANT_UID: obj.uid,
            keys.TENANT_NAMESPACE: obj.namespace,
            keys.TENANT_OWNERS: _owners(obj),
        },
    )


def lower_annotations(annotations: Mapping[str, str], tenant: Tenant) -> dict[str, str]:
    """The annotations that go down."""
    return {key: value for key, value in annotations.items() if not is_annotation_kept_above(key, tenant)}


def is_kept_above(key: str, tenant: Tenant) -> bool:
    """Whether a label stays above: our own words, what the VirtualCluster says, and what comes from below."""
    return key.startswith((*_OURS, *tenant.opaque_prefixes, *tenant.transparent_prefixes))


def is_annotation_kept_above(key: str, tenant: Tenant) -> bool:
    """Whether an annotation stays above."""
    domain, slash, _ = key.partition("/")
    is_opaque = bool(slash) and domain not in _DOWN_ANYWAY and domain.endswith(tenant.opaque_domains)
    return is_opaque or key in _NOTES or is_kept_above(key, tenant)


def vc_annotations(tenant: Tenant) -> dict[str, str]:
    """The VirtualCluster that a copy belongs to."""
    return {keys.TENANT_CLUSTER: tenant.key, keys.VC_NAME: tenant.name, keys.VC_NAMESPACE: tenant.namespace}


def vc_labels(tenant: Tenant) -> dict[str, str]:
    """The same for selectors; a label's value is shorter than a name may be."""
    return {keys.VC_NAME: naming.shortened(tenant.name), keys.VC_NAMESPACE: tenant.namespace}


def with_its_tenant(obj: Object, _key: Key, facts: Facts) -> Intents:
    """A copy of a tenant's object concerns that tenant, whose cluster is named by its key."""
    key = obj.annotations.get(keys.TENANT_CLUSTER, "")
    return {key: Grade.CHOSEN} if stamp.of(obj) is not None and key in facts.lowers else {}


def transparent(upper: Object, lower: Object, link: Link) -> Iterator[Part]:
    """What the super cluster tells by labels and annotations. It is added above, and never taken away."""
    prefixes = (keys.TRANSPARENCY, *settings.of(link).transparent_prefixes)
    metadata: dict[str, Any] = {
        name: news
        for name, have, told in (
            ("labels", upper.labels, lower.labels),
            ("annotations", upper.annotations, lower.annotations),
        )
        if (news := _news(have, told, prefixes))
    }
    if metadata:
        yield Part({"metadata": metadata})


def also(told: UpPatches) -> UpPatches:
    """What is told of a kind, and what the super cluster tells by labels and annotations."""

    def both(upper: Object, lower: Object, link: Link) -> Iterator[Part]:
        yield from told(upper, lower, link)
        yield from transparent(upper, lower, link)

    return both


def _news(have: Mapping[str, str], told: Mapping[str, str], prefixes: Iterable[str]) -> dict[str, str]:
    beginnings = tuple(prefixes)
    return {key: value for key, value in told.items() if key.startswith(beginnings) and have.get(key) != value}


def _owners(obj: Object) -> str:
    owners = obj.metadata.owner_references
    return msgspec.json.encode(owners).decode() if owners else "null"
