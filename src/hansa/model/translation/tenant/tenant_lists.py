"""What a tenant may name in the super cluster beside its own objects, as lists that only administrators write.

Each list is a flag of vc-syncer for all tenants, and an annotation of a VirtualCluster for one. What an entry allows is
left to the steps and checks that read it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Final

from hansa.model import keys
from hansa.model.translation.tenant import address_lists, key_patterns

_CIDR, _HOST, _PEER = "CIDR", "NAME, *.DOMAIN or *", "CIDR or LABEL=VALUE of namespaces"
_SHOWN: Final = 60  # characters of an invalid entry in a message


@dataclass(frozen=True, slots=True)
class TenantLists:
    """The entries of each list."""

    synced_annotations: frozenset[str] = frozenset()
    endpoint_addresses: frozenset[str] = frozenset()
    external_names: frozenset[str] = frozenset()
    ingress_hosts: frozenset[str] = frozenset()
    ingress_peers: frozenset[str] = frozenset()
    egress_peers: frozenset[str] = frozenset()

    def __or__(self, other: "TenantLists") -> "TenantLists":
        return TenantLists(**{one.name: getattr(self, one.name) | getattr(other, one.name) for one in fields(self)})


@dataclass(frozen=True, slots=True)
class ListKind:
    """One list: its annotation, what its entries are, and which text is one."""

    key: str
    entries: str
    is_valid: Callable[[str], bool]
    help: str
    default: tuple[str, ...] = ()  # of all tenants

    @property
    def flag(self) -> str:
        """The flag of vc-syncer."""
        return f"--{self.name}"

    @property
    def name(self) -> str:
        """The annotation without its domain."""
        return self.key.removeprefix(f"{keys.TENANCY}/")

    @property
    def field(self) -> str:
        """The field of TenantLists."""
        return self.name.replace("-", "_")


KINDS: Final = (
    ListKind(
        keys.SYNCED_ANNOTATIONS,
        "KEY, PREFIX* or KIND:KEY",
        key_patterns.is_pattern,
        "annotations that are synced down; without a KIND of all kinds but Namespace",
        # They steer clients such as kubectl, and the hints of a tenant's own endpoints.
        (
            "Pod:kubectl.kubernetes.io/default-container",
            "Pod:kubectl.kubernetes.io/default-logs-container",
            "Service:service.kubernetes.io/topology-mode",
        ),
    ),
    ListKind(
        keys.ENDPOINT_ADDRESSES,
        _CIDR,
        address_lists.is_network,
        "addresses that Endpoints and EndpointSlices written by users may have, beside those of the tenant's pods",
    ),
    ListKind(
        keys.EXTERNAL_NAMES,
        _HOST,
        address_lists.is_host_pattern,
        "names that Services of type ExternalName may have",
    ),
    ListKind(
        keys.INGRESS_HOSTS,
        _HOST,
        address_lists.is_host_pattern,
        "hosts that Ingresses may have; * also allows a default backend",
    ),
    ListKind(
        keys.INGRESS_PEERS,
        _PEER,
        address_lists.is_peer,
        "who may reach tenants' pods, beside the tenant itself and what is outside of --inside-ranges",
    ),
    ListKind(
        keys.EGRESS_PEERS,
        _PEER,
        address_lists.is_peer,
        "what tenants' pods may reach, beside the tenant itself and what is outside of --inside-ranges",
    ),
)


def parse(texts: Mapping[str, str]) -> tuple[TenantLists, dict[str, str]]:
    """The lists from texts by key, and a message by the key of each list with an invalid entry."""
    valid: dict[str, frozenset[str]] = {}
    invalid: dict[str, str] = {}
    for kind in KINDS:
        entries = frozenset(one.strip() for one in texts.get(kind.key, "").split(",")) - {""}
        valid[kind.field] = frozenset(filter(kind.is_valid, entries))
        if unknown := sorted(entries - valid[kind.field]):
            invalid[kind.key] = f'"{unknown[0][:_SHOWN]}" is not {kind.entries}'
    return TenantLists(**valid), invalid


def default() -> TenantLists:
    """The lists of all tenants without flags."""
    return parse({kind.key: ",".join(kind.default) for kind in KINDS})[0]
