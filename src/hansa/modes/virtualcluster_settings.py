"""Settings of the virtualcluster mode for all tenants, checked on input. `TenantSettings` has those of one tenant."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from hansa.model import limits
from hansa.model.limits import Limits
from hansa.model.translation.tenant.nodes import AgentAddress, VirtualNodeSettings
from hansa.model.translation.tenant.tenant_settings import Allowance
from hansa.model.translation.tenant.tenant_settings import TenantSettings as TenantSettings  # noqa: PLC0414 - re-exported for routes
from hansa.runtime import errors


class InvalidSettings(errors.HansaError):
    """A flag has a value that is not supported."""


class Extra(StrEnum):
    """Values of --extra-syncing-resources, which has no effect: two are synced always, two are shared by a label."""

    INGRESS = "ingress"
    NETWORK_POLICY = "networkpolicy"
    PRIORITY_CLASS = "priorityclass"
    CUSTOM_RESOURCE_DEFINITION = "crd"


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Settings of a pool of super clusters."""

    # Pods reach pods of other super clusters, so a Service has the endpoints of all super clusters.
    are_networks_joined: bool = False
    # Seconds for which copies stay after their namespace is no longer placed there: when a user removes the placements
    # annotation, the scheduler often chooses the same super clusters again.
    retention: float = 10.0


@dataclass(frozen=True, slots=True)
class VirtualClusterSettings:
    """Settings of the mode."""

    nodes: VirtualNodeSettings = field(default_factory=VirtualNodeSettings)
    isolates: bool = True  # tenants' pods are kept apart by NetworkPolicies
    node_retention: float = 120.0  # seconds for which a virtual node stays after the tenant's last pod on it
    pool: PoolSettings | None = None  # None: one super cluster, no placements


def check_extra(names: Iterable[str]) -> None:
    """Check --extra-syncing-resources."""
    _checked_names(names, "--extra-syncing-resources: unknown extra resource", Extra, shown=Extra)


def allowances(names: Iterable[str]) -> frozenset[Allowance]:
    """Parse --allow."""
    return frozenset(map(Allowance, _checked_names(names, "--allow: unknown allowance", Allowance, shown=Allowance)))


def limits_of_tenants(pairs: Iterable[str]) -> Limits:
    """Parse --limits: name=amount."""
    found, invalid = limits.merged(limits.DEFAULT_LIMITS, dict(_limit(pair) for pair in pairs))
    if invalid:
        raise InvalidSettings(f"--limits: {invalid[0]}")
    return found


def _limit(pair: str) -> tuple[str, str]:
    name, equals, amount = pair.partition("=")
    if not equals:
        raise InvalidSettings(f'--limits: "{pair}" is not name=amount, such as bytes=64Mi')
    return name, amount


def shown_limits() -> str:
    """The default limits as --limits takes them."""
    amounts = zip(limits.Limit, limits.DEFAULT_LIMITS, strict=True)
    return ",".join(
        f"{name}={amount // limits.MIB}Mi" if name is limits.Limit.BYTES else f"{name}={amount}"
        for name, amount in amounts
        if amount < limits.UNLIMITED
    )


def dns_options(text: str) -> tuple[tuple[str, str], ...]:
    """Parse --dns-options: name=value or name, separated by commas."""
    pairs = (option.strip().partition("=") for option in text.split(",") if option.strip())
    return tuple((name, value) for name, _, value in pairs)


def agents(text: str, port: int) -> dict[str, AgentAddress]:
    """Parse --vn-agent-address: ID=IP:PORT for super clusters of a pool, otherwise IP:PORT, separated by commas."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        id_, equals, address = part.rpartition("=")
        try:
            split = urlsplit(f"//{address}")
            found[id_] = AgentAddress(str(ipaddress.ip_address(split.hostname or "")), split.port or port)
        except ValueError:
            raise InvalidSettings(
                f'--vn-agent-address "{part}" is invalid: use IP:PORT, or ID=IP:PORT with the id of a super cluster'
            ) from None
        if equals and not id_:
            raise InvalidSettings(f'--vn-agent-address "{part}" has no id of a super cluster before "="')
    return found


def _checked_names(names: Iterable[str], what: str, supported: type[StrEnum], *, shown: Iterable[StrEnum]) -> set[str]:
    # An unknown name is an error: ignored, it would be noticed much later.
    given = {name.strip() for name in names} - {""}
    if unknown := sorted(given - set(supported)):
        raise InvalidSettings(f'{what} "{unknown[0]}"; supported: {", ".join(shown)}')
    return given
