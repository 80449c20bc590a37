"""A tenant's pods below: small steps down, what follows, what comes back, and what is refused (`guard`).

They work as in a cluster of their own: names, environment, tokens, neighbours and their own fields are the tenant's.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys, lifecycle, placement, references
from hansa.model.mode import Part
from hansa.model.pair import Key, Link
from hansa.model.placement import Facts, Intents, everywhere
from hansa.model.references import Missing, Reference
from hansa.model.translation.pod import access, following, spec, status, volumes
from hansa.model.translation.pod import fields as any_fields
from hansa.model.translation.pod import relations as any_relations
from hansa.model.translation.tenant import metadata, settings, telling
from hansa.model.translation.tenant.pod import downward, fields, readiness, relations, resolving, variables


def mark_tenant(pod: Object, link: Link) -> Object:
    """The tenant's key as a label, which pods have besides their annotations."""
    return pod.with_metadata(labels={**pod.labels, keys.TENANT_CLUSTER: settings.of(link).key})


DOWN: Final = (
    downward.park_tables,
    spec.on_spec(
        downward.read_as_above,
        fields.pin_to_node,
        fields.choose_scheduler,
        fields.name_whole,
        any_fields.drop_node_fields,
        any_relations.settle_label_keys,
        relations.stay_among_own,
        volumes.claim_ephemeral_volumes,
        access.share_tokens,
        access.rename_root_ca,
        resolving.ask_tenant,
        variables.name_api,
        variables.tell_services,
    ),
    metadata.own,
    mark_tenant,
    following.note_images,
)


def unscheduled(lower: Object) -> tuple[str, ...]:
    """Whose pod waits for a look of the super cluster's scheduler; one that was found to fit nowhere does no longer."""
    upper = lower.labels.get(keys.UPPER)
    if not upper or lower.is_leaving or placement.node_of(lower):
        return ()
    return () if any(one["type"] == "PodScheduled" for one in lower.status.get("conditions") or ()) else (upper,)


def down_patches(lower: Object, wanted: Object) -> Iterator[Part]:
    """What the tenant's pod changed since, and its readiness gates."""
    yield from following.down_patches(lower, wanted)
    yield from readiness.patches(lower, wanted)


def up_patches(upper: Object, lower: Object, link: Link) -> Iterator[Part]:
    """The status, in the tenant's words."""
    yield from status.up_patches(upper, telling.status_of(lower, upper.namespace, link), link)


def needs(pod: Object) -> Iterator[Reference]:
    """What must be there before a pod: what it names, its variables, and the DNS server's Service, if it asks it.

    What it names is the tenant's or nobody's. Only pull secrets may be the super cluster's own, where that is allowed.
    """
    for one in references.objects_of_pod(pod):
        reads = Missing.KEPT_FREE if one.is_optional else Missing.AWAITED
        yield one if one.is_for_pulling else one._replace(missing=reads)
    yield variables.table_of(pod)
    yield Reference(resources.SERVICES, *variables.API)  # it may have to find it by name
    if resolving.asks_cluster(pod):
        yield Reference(resources.SERVICES, *resolving.DNS)


def ungated(pod: Object, key: Key, facts: Facts) -> Intents:
    """A pod is in the super cluster as soon as nobody above holds back its scheduling."""
    return {} if is_held(pod) else everywhere(pod, key, facts)


def is_held(pod: Object) -> bool:
    """Whether somebody holds back its scheduling."""
    return b'"schedulingGates"' in pod.raw("spec") and bool(pod.spec.get("schedulingGates"))


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[_Condition, ...] | None = None


def was_bound(pod: Object) -> bool:
    """A pod that was told its node has lived below: another one of its name might be put elsewhere.

    A manifest that was copied from such a pod has the annotation, but no status.
    """
    if keys.LOWER_UID not in pod.annotations:
        return False
    scheduled = _Condition("PodScheduled", "True")
    return lifecycle.was_pod_below(pod) or scheduled in (pod.decode("status", _Status).conditions or ())


LIFE: Final = replace(lifecycle.POD, was_below=was_bound)
