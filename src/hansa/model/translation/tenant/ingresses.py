"""A tenant's Ingresses in the super cluster: which class may serve them."""

from collections.abc import Iterator
from typing import Final

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model.lookups import Reads
from hansa.model.pair import Link
from hansa.model.references import Reference
from hansa.model.translation.tenant import classes


def check(obj: Object, link: Link) -> str:
    """Why an Ingress is not synced; empty if it may be. It may name only a class that is offered to the tenant."""
    name = obj.spec.get("ingressClassName")
    return classes.refusal("spec.ingressClassName", resources.INGRESS_CLASSES, name, link) if name else ""


def _class_of(obj: Object) -> Iterator[Reference]:
    if name := obj.spec.get("ingressClassName"):
        yield Reference(resources.INGRESS_CLASSES, "", name)


READS: Final = Reads(frozenset({resources.INGRESS_CLASSES}), _class_of)
