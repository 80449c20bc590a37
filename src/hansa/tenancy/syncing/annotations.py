"""What a VirtualCluster asks of the syncer by annotations: its weight, and what its pods may. Pure.

Nothing checks annotations at admission: what cannot be read is a sentence here, and something safe is used instead.
"""

from dataclasses import dataclass
from typing import Final

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.translation.tenant.tenant_settings import Allowance

DEFAULT_WEIGHT: Final = 1.0
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 100.0  # between the extremes one has 10,000 turns while the other has one
_SHOWN: Final = 60  # characters of what somebody wrote: enough to find it


@dataclass(frozen=True, slots=True)
class TenantAnnotations:
    """What is used. `unread` has a sentence for each annotation that cannot be read as a whole."""

    weight: float = DEFAULT_WEIGHT
    allowed: frozenset[Allowance] = frozenset()
    unread: tuple[str, ...] = ()


def of(vc: Object) -> TenantAnnotations:
    """Read them."""
    weight, bad_weight = _weight(vc.annotations.get(keys.WEIGHT, "").strip())
    allowed, bad_allowances = _allowed(vc.annotations.get(keys.ALLOW, ""))
    return TenantAnnotations(weight, allowed, tuple(sentence for sentence in (bad_weight, bad_allowances) if sentence))


def _weight(text: str) -> tuple[float, str]:
    if not text:
        return DEFAULT_WEIGHT, ""
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        return weight, ""
    wanted = f"a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"
    return DEFAULT_WEIGHT, f"{keys.WEIGHT} {_shown(text)} is not {wanted}: the weight {DEFAULT_WEIGHT:g} is used"


def _allowed(text: str) -> tuple[frozenset[Allowance], str]:
    words = {word.strip() for word in text.split(",")} - {""}
    allowed = frozenset(map(Allowance, words & set(Allowance)))
    unknown = sorted(words - set(Allowance))
    if not unknown:
        return allowed, ""
    listed = _shown(", ".join(unknown))
    return allowed, f"{keys.ALLOW} names {listed}, which allows nothing: there are {', '.join(Allowance)}"


def _shown(text: str) -> str:
    return f'"{text if len(text) <= _SHOWN else text[:_SHOWN] + "…"}"'
