"""What is wanted for the slices of one namespace: the input of planning, read from objects by others."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hansa.scheduling.slicing import slices
from hansa.scheduling.slicing.placements import Holding, Placements
from hansa.scheduling.slicing.policies import Policy, Spread


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """What is wanted for a namespace, and what is known about it."""

    namespace: str
    quota: Mapping[str, int]
    slice: slices.Slice = field(default_factory=lambda: slices.DEFAULT)
    standing: Placements = field(default_factory=dict)  # what stands on the namespace now, whoever wrote it
    planned: Holding | None = None  # what was planned last
    used: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by pods that run, in each cluster
    policy: Policy = field(default_factory=Spread)
    may_be_partial: bool = True
    may_evict: bool = False
