"""Ingresses: as above, served by the class of that name below, whose addresses come back."""

from collections.abc import Iterable
from typing import Final

from hansa.kube.objects import Object
from hansa.model import diff, mode
from hansa.model.mode import PatchPart
from hansa.model.pair import Link

ingress_patches: Final = mode.patches_of("spec")


def ingress_told(upper: Object, lower: Object, _link: Link) -> Iterable[PatchPart]:
    """The addresses that it is served at."""
    if lower.raw("status") == upper.raw("status"):
        return
    told = {"loadBalancer": lower.status.get("loadBalancer") or {}}
    if patch := diff.merge_patch({"loadBalancer": upper.status.get("loadBalancer") or {}}, told):
        yield PatchPart({"status": patch}, "status")
