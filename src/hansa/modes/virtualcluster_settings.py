"""What a user says about all tenants, checked where it enters. What is said of one tenant is its `Tenant`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from hansa.model.translation.tenant.nodes import Look
from hansa.model.translation.tenant.settings import Allowance
from hansa.model.translation.tenant.settings import Tenant as Tenant  # noqa: PLC0414 - who makes routes finds it here
from hansa.runtime import errors


class InvalidSettings(errors.HansaError):
    """The user asked for something that cannot be."""


class Extra(StrEnum):
    """What travels besides what every tenant needs. The last two always do: they are offered by a label."""

    INGRESS = "ingress"
    NETWORK_POLICY = "networkpolicy"
    PRIORITY_CLASS = "priorityclass"
    CUSTOM_RESOURCE_DEFINITION = "crd"


@dataclass(frozen=True, slots=True)
class Pool:
    """What is so for a pool of super clusters."""

    # Pods of one super cluster reach those of the others: a Service then has the endpoints of all of them everywhere.
    are_networks_joined: bool = False
    # Seconds for which copies stay where their namespace is not placed any more: placements that somebody clears are
    # planned anew, and are often the same again.
    lingers: float = 10.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The same for all tenants of a super cluster."""

    extra: frozenset[Extra] = frozenset()
    nodes: Look = field(default_factory=Look)
    nodes_linger: float = 120.0  # seconds for which a tenant keeps a node after its last pod there went
    pool: Pool | None = None  # with one super cluster, nothing has to be placed


def extra(names: Iterable[str]) -> frozenset[Extra]:
    """Read names of kinds."""
    return frozenset(map(Extra, _known(names, "extra kind", Extra)))


def allowances(names: Iterable[str]) -> frozenset[Allowance]:
    """Read what all tenants may."""
    return frozenset(map(Allowance, _known(names, "allowance", Allowance)))


def dns_options(text: str) -> tuple[tuple[str, str], ...]:
    """Read options of resolv.conf: name=value, with commas between them; some have no value."""
    pairs = (option.strip().partition("=") for option in text.split(",") if option.strip())
    return tuple((name, value) for name, _, value in pairs)


def _known(names: Iterable[str], what: str, words: type[StrEnum]) -> set[str]:
    # A wrong name is refused: it would otherwise be noticed much later.
    asked = {name.strip() for name in names} - {""}
    if unknown := sorted(asked - set(words)):
        raise InvalidSettings(f'there is no {what} "{unknown[0]}": there are {", ".join(words)}')
    return asked
