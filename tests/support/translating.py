"""Pods, and their copies and patches in the mode tensile; used by unit tests of translations."""

from collections.abc import Iterable
from typing import Any

import golden_files
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model.mode import PatchPart
from hansa.model.pair import Key, Link

RULE = golden_files.TENSILE.rules[resources.PODS]
SERVER_DEFAULTS = {"dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "priority": 0}


def a_pod(
    spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: dict[str, str]
) -> Object:
    """An upper pod; by default with one container."""
    whole = {"containers": [{"name": "main", "image": "main:1"}], "nodeName": "vn1"} | (spec or {})
    names = {"name": "web", "namespace": "shop", "uid": "upper-uid"}
    return Object.of({"kind": "Pod", "metadata": names | metadata, "spec": whole, "status": status or {}})


def desired(upper: Object, link: Link = golden_files.LINK) -> Object:
    """The desired lower pod."""
    return golden_files.TENSILE.desired(upper, Key(link.upper, resources.PODS, *upper.key), link)


def created(upper: Object, status: dict[str, Any] | None = None) -> Object:
    """The lower pod after its creation, with the uid and the fields that the server and a scheduler add."""
    assert RULE.on_create is not None
    born = RULE.on_create(desired(upper))
    running = born.spec | SERVER_DEFAULTS | {"nodeName": "worker-1"}
    return born.with_metadata(uid="lower-uid").with_fields(spec=running, status=status or {})


def follow(lower: Object, upper: Object) -> list[PatchPart]:
    """The patches of the lower pod."""
    return list(RULE.down_patches(lower, desired(upper)))


def upper_patches(upper: Object, lower: Object) -> list[PatchPart]:
    """The patches of the upper pod."""
    assert RULE.up_patches is not None
    return list(RULE.up_patches(upper, lower, golden_files.LINK))


def patched(obj: Object, parts: Iterable[PatchPart]) -> Object:
    """The object after these writes."""
    plain = obj.to_dict()
    for part in parts:
        plain = golden_files.merged(plain, part.patch)
    return Object.of(plain)
