"""Owners whose pods a lower cluster could not schedule: an annotation of its virtual node, each until a time. Pure.

The descheduler writes it, and the webhook keeps new pods of these owners off the node. The node is the place for it
because the webhook has it in its cache, and because what a cluster refused is forgotten with it.
"""

import datetime
from typing import Final

import msgspec

from hansa.kube.objects import Object
from hansa.model import annotation_json, keys

MOST: Final = 1000  # owners of one node; with more, the first ones to end are forgotten
LONGEST: Final = 64 * 1024  # characters
HOSTNAME: Final = "kubernetes.io/hostname"  # the label by which pods avoid a node; its value is the node's name


def of(node: Object, now: datetime.datetime) -> dict[str, float]:
    """The owners that a node refuses now, each with the time at which that ends, in seconds since 1970."""
    text = node.annotations.get(keys.REFUSED_OWNERS, "")
    try:
        ends = annotation_json.decode(text or "{}", dict[str, float], longest=LONGEST)
    except annotation_json.AnnotationJsonError:
        return {}  # an invalid annotation refuses no owner
    return {owner: end for owner, end in ends.items() if end > now.timestamp()}


def with_owner(node: Object, owner: str, *, now: datetime.datetime, seconds: float) -> str:
    """The annotation with one more owner, for so many seconds."""
    ends = of(node, now) | {owner: round(now.timestamp() + seconds)}
    newest = sorted(ends, key=lambda one: (-ends[one], one))[:MOST]
    return msgspec.json.encode({one: ends[one] for one in sorted(newest)}).decode()


def owner_of(pod: Object) -> str:
    """The uid of the controller that creates a pod again; empty if there is none."""
    return next((one.uid for one in pod.metadata.owner_references if one.controller), "")
