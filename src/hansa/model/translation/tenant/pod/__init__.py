"""A tenant's pods in the super cluster: the steps that translate a pod, its updates, status, references and lifecycle.

A pod behaves as in a cluster of its own: names, environment, tokens, affinity and downward API refer to the tenant.
`restrictions` has what is refused.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys, lifecycle, placement, references
from hansa.model.lookups import Reads
from hansa.model.mode import PatchPart
from hansa.model.pair import Key, Link
from hansa.model.placement import Intents, PlacementContext, everywhere
from hansa.model.references import Missing, Reference
from hansa.model.translation.common.pod import access, spec, status, updates, volumes
from hansa.model.translation.common.pod import affinity as any_relations
from hansa.model.translation.common.pod import fields as any_fields
from hansa.model.translation.tenant import claims, disruption_budgets, isolation, messages, metadata, tenant_settings
from hansa.model.translation.tenant.pod import affinity, dns, downward_api, environment, fields, readiness, restrictions


def label_tenant(pod: Object, link: Link) -> Object:
    """Add the tenant's key as a label, so that pods of one tenant can be selected."""
    return pod.with_metadata(labels={**pod.labels, keys.TENANT_CLUSTER: tenant_settings.of(link).key})


DOWN: Final = (
    downward_api.annotate_field_values,
    spec.on_spec(
        downward_api.rewrite_field_refs,
        fields.pin_to_node,
        fields.choose_scheduler,
        fields.set_fqdn_hostname,
        any_fields.drop_node_fields,
        any_relations.drop_applied_label_keys,
        affinity.scope_to_tenant,
        volumes.claim_ephemeral_volumes,
        access.mount_upper_tokens,
        access.rename_root_ca,
        dns.use_tenant_dns,
        environment.alias_api_server,
        environment.inject_service_variables,
    ),
    metadata.tenant_metadata,
    label_tenant,
    isolation.label_selected,
    disruption_budgets.label_selected,
    updates.annotate_images,
)


def awaiting_scheduler(lower: Object) -> tuple[str, ...]:
    """The upper cluster of a lower pod that the super cluster's scheduler has not tried yet; empty once it has."""
    upper = lower.labels.get(keys.UPPER)
    if not upper or lower.is_deleting or placement.node_of(lower):
        return ()
    return () if any(one["type"] == "PodScheduled" for one in lower.status.get("conditions") or ()) else (upper,)


def down_patches(lower: Object, wanted: Object) -> Iterator[PatchPart]:
    """Patches of the lower pod: the fields that may change after creation, and readiness gates."""
    yield from updates.down_patches(lower, wanted)
    yield from readiness.gate_patches(lower, wanted)


def up_patches(upper: Object, lower: Object, link: Link) -> Iterator[PatchPart]:
    """Patches of the upper pod: the lower status with the tenant's namespace names."""
    shown = messages.with_tenant_status(lower, upper.namespace, tenant_settings.of(link).key)
    yield from status.up_patches(upper, shown, link)


def required_objects(pod: Object) -> Iterator[Reference]:
    """What must exist in the super cluster before the pod: what it refers to, its service variables, and cluster DNS.

    A name must refer to the tenant's object; an object of the super cluster with that name is never used. Only pull
    secrets may be the super cluster's own, where that is allowed.
    """
    for one in references.objects_of_pod(pod):
        missing = Missing.PLACEHOLDER if one.is_optional else Missing.REQUIRED
        yield one if one.is_for_pulling else one._replace(missing=missing)
    yield environment.config_map_reference(pod)
    yield Reference(resources.SERVICES, *environment.API_SERVICE)  # for the hostAliases of `alias_api_server`
    if dns.uses_cluster_dns(pod):
        yield Reference(resources.SERVICES, *dns.DNS_SERVICE)


SELECTED_BY: Final = frozenset({resources.NETWORK_POLICIES, resources.POD_DISRUPTION_BUDGETS})


def _objects_read(pod: Object) -> Iterator[Reference]:
    yield from (Reference(kind, pod.namespace, "") for kind in SELECTED_BY)
    yield Reference(resources.SERVICES, *environment.API_SERVICE)
    if dns.uses_cluster_dns(pod):
        yield Reference(resources.SERVICES, *dns.DNS_SERVICE)
    yield from restrictions.objects_read(pod)


READS: Final = Reads(
    frozenset(
        {
            *(resources.SERVICES, resources.CONFIG_MAPS, resources.SECRETS, *SELECTED_BY),
            *(resources.PODS, resources.NODES, resources.PRIORITY_CLASSES, resources.RUNTIME_CLASSES),
            *claims.KINDS,
        }
    ),
    _objects_read,
    lists=SELECTED_BY,
)


def unless_gated(pod: Object, key: Key, context: PlacementContext) -> Intents:
    """Placement: a pod is created in the super cluster once it has no scheduling gates."""
    return {} if is_gated(pod) else everywhere(pod, key, context)


def is_gated(pod: Object) -> bool:
    """Whether a pod has scheduling gates."""
    return b'"schedulingGates"' in pod.raw("spec") and bool(pod.spec.get("schedulingGates"))


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[_Condition, ...] | None = None


def was_bound(pod: Object) -> bool:
    """Whether a pod was bound to a node before. Its lower pod is not created again: it might run on another node.

    A manifest that was copied from such a pod has the annotation, but no status.
    """
    if keys.LOWER_UID not in pod.annotations:
        return False
    scheduled = _Condition("PodScheduled", "True")
    return lifecycle.has_pod_run(pod) or scheduled in (pod.decode("status", _Status).conditions or ())


LIFECYCLE: Final = replace(lifecycle.POD, has_run=was_bound)
