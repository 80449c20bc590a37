"""What a tenant's pod may not do in the super cluster unless its VirtualCluster allows it.

Checked before a pod is created or updated there. All of the Pod Security Standard "baseline" is refused, as
docs/security.md shows, and what would reach objects, nodes or volumes that are not the tenant's.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from hansa.kube import resources
from hansa.kube.objects import Malformed, NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import references
from hansa.model.pair import Link
from hansa.model.references import Reference
from hansa.model.translation.tenant import claims, classes, tenant_settings
from hansa.model.translation.tenant.pod.restrictions import (
    containers,
    host,
    known_fields,
    nodes,
    profiles,
    restricted,
    volumes,
)
from hansa.model.translation.tenant.pod.restrictions.pod_spec import PodSpec, Violation
from hansa.model.translation.tenant.tenant_settings import Allowance, PodSecurity, TenantSettings

_FINDERS: Final[Iterable[Callable[[PodSpec], Iterator[Violation]]]] = (
    *(volumes.violations, host.violations, containers.violations, profiles.violations, nodes.violations),
)


def check(pod: Object, link: Link) -> str:
    """Why a pod is not synced; empty if it may be. The message has the field, its value, and how to allow it."""
    tenant = tenant_settings.of(link)
    try:
        spec = pod.decode("spec", PodSpec)
    except Malformed as error:
        return f"{error}; remove what is not known here"
    return next(filter(None, _refusals(pod, spec, tenant, link)), "")


def objects_read(pod: Object) -> Iterator[Reference]:
    """The objects that `check` reads beside the pod."""
    try:
        spec = pod.decode("spec", PodSpec)
    except Malformed:
        return  # refused
    yield from (Reference(resource, "", name) for _, resource, name in _named_classes(spec))
    yield from (Reference(resources.SECRETS, pod.namespace, secret.name) for secret in spec.image_pull_secrets or ())
    for _, _, template in volumes.claim_templates(spec):
        yield from claims.named(template)
    if spec.node_name:
        yield Reference(resources.NODES, "", spec.node_name)
        yield Reference(resources.PODS, pod.namespace, pod.name)
    if spec.ephemeral_containers:
        yield from references.of_added_containers(pod)


def _refusals(pod: Object, spec: PodSpec, tenant: TenantSettings, link: Link) -> Iterator[str]:
    for find in _FINDERS:
        for violation in find(spec):
            if not violation.is_allowed(tenant):
                yield _message(violation, tenant)
    for violation in (*profiles.annotated(pod), *known_fields.violations(pod)):
        if not violation.is_allowed(tenant):
            yield _message(violation, tenant)
    if tenant.pod_security is PodSecurity.RESTRICTED:
        yield from restricted.refusals(spec, tenant)
    yield from _foreign(pod, spec, tenant, link)


def _message(violation: Violation, tenant: TenantSettings) -> str:
    field, allowance = violation
    if allowance is None:
        return f"{field} is not allowed for tenants; remove it"
    return tenant_settings.refusal(field, allowance, tenant)


def _foreign(pod: Object, spec: PodSpec, tenant: TenantSettings, link: Link) -> Iterator[str]:
    """Refusals of names that must be those of the tenant's own objects, or of classes that are offered to it."""
    for field, resource, class_name in _named_classes(spec):
        if resource != resources.PRIORITY_CLASSES or Allowance.PRIORITY_CLASSES not in tenant.allowed:
            yield classes.refusal(field, resource, class_name, link)
    if Allowance.PULL_SECRETS not in tenant.allowed:
        for secret in spec.image_pull_secrets or ():
            own = NamespacedName(pod.namespace, secret.name)
            if secret.name and link.lookups.upper(resources.SECRETS, own) is None:
                what = f"spec.imagePullSecrets: {secret.name} (Secret {own} not found; create it)"
                yield tenant_settings.refusal(what, Allowance.PULL_SECRETS, tenant)
    for path, volume, template in volumes.claim_templates(spec):
        name = NamespacedName(pod.namespace, references.ephemeral_claim(pod.name, volume))
        yield claims.refusal(path, template, name, link)
    for claim in spec.resource_claims or ():
        yield f"spec.resourceClaims[{claim.name}] is not supported: ResourceClaims are not synced; remove it"
    if spec.node_name and link.lookups.lower(resources.PODS, pod.key) is None:
        yield from nodes.unknown(spec.node_name, link)  # a copy has its node, whether the tenant sees it now or not
    if spec.ephemeral_containers:
        yield from _unsynced_references(pod, link)


def _named_classes(spec: PodSpec) -> Iterator[tuple[str, Resource, str]]:
    if spec.priority_class_name:
        yield "spec.priorityClassName", resources.PRIORITY_CLASSES, spec.priority_class_name
    if spec.runtime_class_name:
        yield "spec.runtimeClassName", resources.RUNTIME_CLASSES, spec.runtime_class_name


def _unsynced_references(pod: Object, link: Link) -> Iterator[str]:
    """Refuse ephemeral containers that refer to objects without a copy: the name might be the super cluster's own.

    The references of other containers were checked before the pod was created.
    """
    for one in references.of_added_containers(pod):
        if link.lookups.lower(one.resource, NamespacedName(one.namespace, one.name)) is None:
            what = f"{one.resource.kind} {one.namespace}/{one.name}"
            yield f"spec.ephemeralContainers: waiting for {what}: not found in the super cluster; create {what}"
