"""The annotations of a VirtualCluster for vc-syncer: its weight, its lists, and what its pods may do. Pure.

Annotations are not validated at admission: an invalid value gives a message here, and a safe default is used.
"""

from dataclasses import dataclass, field
from typing import Final

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.translation.tenant import tenant_lists
from hansa.model.translation.tenant.tenant_lists import TenantLists
from hansa.model.translation.tenant.tenant_settings import POD_SECURITY_LEVELS, Allowance, PodSecurity

DEFAULT_WEIGHT: Final = 1.0
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 100.0  # the largest gets 10,000 turns in the queue for one of the smallest
_SHOWN: Final = 60  # characters of an invalid value in a message


@dataclass(frozen=True, slots=True)
class TenantAnnotations:
    """The values in effect. `invalid` has a message for each annotation with an invalid value."""

    weight: float = DEFAULT_WEIGHT
    allowed: frozenset[Allowance] = frozenset()
    pod_security: PodSecurity | None = None  # None: as for all tenants
    lists: TenantLists = field(default_factory=TenantLists)
    dns: bool | None = None  # None: by the provisioner
    invalid: tuple[str, ...] = ()


def of(vc: Object) -> TenantAnnotations:
    """Read the annotations of a VirtualCluster."""
    weight, bad_weight = _weight(vc.annotations.get(keys.WEIGHT, "").strip())
    allowed, bad_allowances = _allowed(vc.annotations.get(keys.ALLOW, ""))
    level, bad_level = _pod_security(vc.annotations.get(keys.POD_SECURITY, "").strip())
    lists, bad_lists = tenant_lists.parse(vc.annotations)
    dns, bad_dns = _dns(vc.annotations.get(keys.DNS, "").strip())
    of_lists = (f"annotation {key}: {what}" for key, what in bad_lists.items())
    messages = (bad_weight, bad_allowances, bad_level, bad_dns, *of_lists)
    return TenantAnnotations(weight, allowed, level, lists, dns, tuple(message for message in messages if message))


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
    return DEFAULT_WEIGHT, f"annotation {keys.WEIGHT}: {_shown(text)} is not {wanted}; using {DEFAULT_WEIGHT:g}"


def _allowed(text: str) -> tuple[frozenset[Allowance], str]:
    names = {name.strip() for name in text.split(",")} - {""}
    allowed = frozenset(map(Allowance, names & set(Allowance)))
    unknown = sorted(names - set(Allowance))
    if not unknown:
        return allowed, ""
    listed = _shown(", ".join(unknown))
    return allowed, f"annotation {keys.ALLOW}: unknown allowance {listed}; supported: {', '.join(Allowance)}"


def _pod_security(text: str) -> tuple[PodSecurity | None, str]:
    if not text or text in POD_SECURITY_LEVELS:
        return (PodSecurity(text) if text else None), ""
    wanted = " or ".join(POD_SECURITY_LEVELS)
    using = f"using {PodSecurity.RESTRICTED}, which allows least"
    return PodSecurity.RESTRICTED, f"annotation {keys.POD_SECURITY}: {_shown(text)} is not {wanted}; {using}"


def _dns(text: str) -> tuple[bool | None, str]:
    if text in ("", "true", "false"):
        return (text == "true" if text else None), ""
    return None, f"annotation {keys.DNS}: {_shown(text)} is not true or false; using the default"


def _shown(text: str) -> str:
    return f'"{text if len(text) <= _SHOWN else text[:_SHOWN] + "…"}"'
