"""A tenant's Ingresses in the super cluster: which class may serve them, for which hosts, and with which Secrets."""

from collections.abc import Iterator
from typing import Any, Final

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.lookups import Reads
from hansa.model.pair import Link
from hansa.model.references import Missing, Reference
from hansa.model.translation.tenant import address_lists, classes, tenant_settings

Spec = dict[str, Any]
_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"  # the former form of spec.ingressClassName


def check(obj: Object, link: Link) -> str:
    """Why an Ingress is not synced; empty if it may be."""
    if refusal := _class_refusal(_class_name(obj), link):
        return refusal
    spec, tenant = obj.spec, tenant_settings.of(link)
    for field, backend in _backends(spec):
        if backend.get("resource"):
            return f"{field}.resource is not supported: its object is not synced; use {field}.service"
    for field, host in _hosts(spec):
        if not address_lists.has_host(tenant.lists.ingress_hosts, host):
            shown = f"{field}: {host}" if host else f"{field}, which serves every host,"
            return tenant_settings.list_refusal(shown, keys.INGRESS_HOSTS, tenant)
    return ""


def _class_refusal(name: str, link: Link) -> str:
    if not name:
        # The default class of the super cluster would serve it, whether it is offered or not.
        return (
            "spec.ingressClassName is not set and the tenant has no default IngressClass; name one that 'kubectl get"
            " ingressclasses' lists"
        )
    return classes.refusal("spec.ingressClassName", resources.INGRESS_CLASSES, name, link)


def name_class(obj: Object, _link: Link) -> Object:
    """Move the class from the annotation, which is not synced, to the spec: else the default class would serve it."""
    name = obj.annotations.get(_CLASS_ANNOTATION)
    if not name or obj.spec.get("ingressClassName"):
        return obj
    annotations = {key: value for key, value in obj.annotations.items() if key != _CLASS_ANNOTATION}
    return obj.with_metadata(annotations=annotations).with_fields(spec=obj.spec | {"ingressClassName": name})


def secrets(obj: Object) -> Iterator[Reference]:
    """The Secrets of an Ingress. A missing one gets an empty copy: the super cluster may have one of that name."""
    for one in obj.spec.get("tls") or ():
        if name := one.get("secretName"):
            yield Reference(resources.SECRETS, obj.namespace, name, is_optional=True, missing=Missing.PLACEHOLDER)


def _class_of(obj: Object) -> Iterator[Reference]:
    if name := _class_name(obj):
        yield Reference(resources.INGRESS_CLASSES, "", name)


READS: Final = Reads(frozenset({resources.INGRESS_CLASSES}), _class_of)


def _class_name(obj: Object) -> str:
    return obj.spec.get("ingressClassName") or obj.annotations.get(_CLASS_ANNOTATION) or ""


def _backends(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """All backends with the fields that have them."""
    yield "spec.defaultBackend", spec.get("defaultBackend") or {}
    for number, rule in enumerate(spec.get("rules") or ()):
        for index, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield f"spec.rules[{number}].http.paths[{index}].backend", path.get("backend") or {}


def _hosts(spec: Spec) -> Iterator[tuple[str, str]]:
    """All host names with the fields that have them; an empty one is every host."""
    if spec.get("defaultBackend"):
        yield "spec.defaultBackend", ""
    for number, rule in enumerate(spec.get("rules") or ()):
        yield f"spec.rules[{number}].host", rule.get("host") or ""
    for number, tls in enumerate(spec.get("tls") or ()):
        yield from ((f"spec.tls[{number}].hosts", host) for host in tls.get("hosts") or ())
