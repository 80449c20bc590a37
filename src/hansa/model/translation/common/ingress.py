"""Ingresses: copies, served by the IngressClass of the same name in the lower cluster. Addresses are synced up."""

from collections.abc import Iterable
from typing import Final

from hansa.kube.objects import Object
from hansa.model import diff, mode
from hansa.model.mode import PatchPart
from hansa.model.pair import Link

ingress_patches: Final = mode.patches_of("spec")


def ingress_up_patches(upper: Object, lower: Object, _link: Link) -> Iterable[PatchPart]:
    """Patches for the load balancer addresses."""
    if lower.raw("status") == upper.raw("status"):
        return
    want = {"loadBalancer": lower.status.get("loadBalancer") or {}}
    if patch := diff.merge_patch({"loadBalancer": upper.status.get("loadBalancer") or {}}, want):
        yield PatchPart({"status": patch}, "status")
