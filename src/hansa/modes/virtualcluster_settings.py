"""Settings of the virtualcluster mode that apply to all tenants, checked on input. `Tenant` has those of one tenant."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from hansa.model.translation.tenant.nodes import VirtualNodeSettings
from hansa.model.translation.tenant.tenant_settings import Allowance
from hansa.model.translation.tenant.tenant_settings import Tenant as Tenant  # noqa: PLC0414 - re-exported for routes
from hansa.runtime import errors


class InvalidSettings(errors.HansaError):
    """A flag has a value that is not supported."""


class Extra(StrEnum):
    """Values of --extra-syncing-resources. The last two are accepted and have no effect: a label shares those kinds."""

    INGRESS = "ingress"
    NETWORK_POLICY = "networkpolicy"
    PRIORITY_CLASS = "priorityclass"
    CUSTOM_RESOURCE_DEFINITION = "crd"


@dataclass(frozen=True, slots=True)
class Pool:
    """Settings of a pool of super clusters."""

    # Pods reach pods of other super clusters, so a Service has the endpoints of all super clusters.
    are_networks_joined: bool = False
    # Seconds for which copies stay after their namespace is no longer placed there: when a user removes the placements
    # annotation, the scheduler often chooses the same super clusters again.
    retention: float = 10.0


@dataclass(frozen=True, slots=True)
class VirtualClusterSettings:
    """Settings of the mode."""

    extra: frozenset[Extra] = frozenset()
    nodes: VirtualNodeSettings = field(default_factory=VirtualNodeSettings)
    node_retention: float = 120.0  # seconds for which a virtual node stays after the tenant's last pod on it
    pool: Pool | None = None  # None: one super cluster, no placements


def extra(names: Iterable[str]) -> frozenset[Extra]:
    """Parse --extra-syncing-resources."""
    return frozenset(map(Extra, _checked_names(names, "extra resource", Extra)))


def allowances(names: Iterable[str]) -> frozenset[Allowance]:
    """Parse --allow."""
    return frozenset(map(Allowance, _checked_names(names, "allowance", Allowance)))


def dns_options(text: str) -> tuple[tuple[str, str], ...]:
    """Parse --dns-options: name=value or name, separated by commas."""
    pairs = (option.strip().partition("=") for option in text.split(",") if option.strip())
    return tuple((name, value) for name, _, value in pairs)


def _checked_names(names: Iterable[str], what: str, supported: type[StrEnum]) -> set[str]:
    # An unknown name is an error: ignored, it would be noticed much later.
    given = {name.strip() for name in names} - {""}
    if unknown := sorted(given - set(supported)):
        raise InvalidSettings(f'unknown {what} "{unknown[0]}"; supported: {", ".join(supported)}')
    return given
