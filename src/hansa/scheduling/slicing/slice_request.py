"""The input of planning for one namespace. `annotations` makes it from objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hansa.scheduling.slicing import slices
from hansa.scheduling.slicing.placements import Holding, Placements
from hansa.scheduling.slicing.policies import Policy, Spread


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """The quota and slice size of a namespace, its placements, and what its pods use."""

    namespace: str
    quota: Mapping[str, int]
    slice: slices.Slice = field(default_factory=lambda: slices.DEFAULT)
    annotated: Placements = field(default_factory=dict)  # the placements in its annotation, written by us or by a user
    planned: Holding | None = None  # the last plan
    # Without a last plan, the annotation is one of a former version; otherwise it is only a preference.
    trusts_annotation: bool = True
    used: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # requests of its pods, by cluster
    policy: Policy = field(default_factory=Spread)
    may_be_partial: bool = True
    may_evict: bool = False
