"""Claims go down with their pods and are bound there; the volume that a claim got comes up, so that it is bound above.

A volume travels the other way: its original is below, its copy above, so its steps are those of a link upwards.
"""

from collections.abc import Iterable
from typing import Any, Final

from hansa.kube import quantity
from hansa.kube.objects import Object
from hansa.model import diff, keys
from hansa.model.mode import Part
from hansa.model.pair import Link
from hansa.model.translation import settings


def claim(obj: Object, _link: Link) -> Object:
    """As above, the volume's name included: volumes have the same name on both sides. What binding noted is dropped."""
    raise NotImplementedError


def claim_patches(lower: Object, wanted: Object) -> Iterable[Part]:
    """What follows: labels, annotations, the size, the volume attributes class."""
    raise NotImplementedError


def claim_told(upper: Object, lower: Object, link: Link) -> Iterable[Part]:
    """What comes back once the claim is bound above too: its node, its size, its conditions."""
    raise NotImplementedError


def volume(obj: Object, link: Link) -> Object:
    """A lower volume as it appears above: for the same claim, on the virtual node, reclaimed by nobody there."""
    raise NotImplementedError


def volume_patches(upper: Object, wanted: Object) -> Iterable[Part]:
    """What follows above: labels, annotations, the size."""
    raise NotImplementedError
