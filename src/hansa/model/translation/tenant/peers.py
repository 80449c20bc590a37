"""Peers of a tenant's pods in NetworkPolicies of a super cluster.

Ranges inside the super cluster, with its pods, nodes, Services and API servers, are no tenant's peers unless an
administrator names them (`--ingress-peers`, `--egress-peers`). The tenant's own pods are peers by their namespaces.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from hansa.model.pair import Link
from hansa.model.translation.common.endpoint_addresses import Network
from hansa.model.translation.tenant import address_lists, namespaces, tenant_settings

Peer = dict[str, Any]


class Direction(StrEnum):
    """A direction of traffic, as policyTypes names it."""

    INGRESS = "Ingress"
    EGRESS = "Egress"


def own(link: Link) -> list[Peer]:
    """The pods of this tenant."""
    return [{"namespaceSelector": namespaces.selector({}, link)}]


def root(link: Link) -> Peer:
    """The pods of the tenant's control plane, if they run in this super cluster."""
    key = tenant_settings.of(link).key
    return {"namespaceSelector": {"matchLabels": {namespaces.NAME_LABEL: key}}}


def api_endpoints(link: Link) -> dict[int, list[Peer]]:
    """Where pods reach the tenant's API server if it does not say so itself, by port."""
    found: dict[int, list[Peer]] = {}
    for address, port in tenant_settings.of(link).api_endpoints:
        found.setdefault(port, []).extend(map(_block, address_lists.networks(frozenset({address}))))
    return found


def api_servers(link: Link) -> list[Peer]:
    """The addresses of the tenant's API server, if pods can reach it there."""
    addresses = address_lists.networks(tenant_settings.of(link).api_addresses)
    return [_block(one) for one in addresses if not one.is_loopback]


def name_servers(link: Link) -> list[Peer]:
    """The addresses of name servers."""
    isolation = tenant_settings.of(link).isolation
    return [] if isolation is None else [_block(one) for one in address_lists.networks(isolation.name_servers)]


def reaches_api_server(block: Peer, link: Link) -> bool:
    """Whether an ipBlock of a tenant has an address of its API server."""
    whole = address_lists.network(block["cidr"])
    tenant = tenant_settings.of(link)
    addresses = tenant.api_addresses | {one.address for one in tenant.api_endpoints}
    return any(_is_in(one, whole) for one in address_lists.networks(addresses))


def named(link: Link, direction: Direction) -> list[Peer]:
    """The peers that an administrator names."""
    blocks, selectors = _named(link, direction)
    return [*map(_block, blocks), *({"namespaceSelector": {"matchLabels": one}} for one in selectors)]


def outside(link: Link) -> list[Peer]:
    """All addresses that are not inside."""
    return [
        block for one in sorted(address_lists.EVERYTHING) for block in _without_inside({"cidr": one}, _inside(link))
    ]


def permitted(block: Peer, link: Link, direction: Direction) -> Iterator[Peer]:
    """The parts of an ipBlock of a tenant that its pods may have as peers."""
    yield from ({"ipBlock": one["ipBlock"]} for one in _without_inside(block, _inside(link)))
    blocks, _ = _named(link, direction)
    whole, exceptions = address_lists.network(block["cidr"]), _exceptions(block)
    for one in blocks:
        if one.version == whole.version and one.overlaps(whole):
            part = whole if whole.prefixlen >= one.prefixlen else one
            if not any(_is_in(part, exception) for exception in exceptions):
                yield _block(part, [exception for exception in exceptions if _is_in(exception, part)])


def _named(link: Link, direction: Direction) -> tuple[tuple[Network, ...], list[dict[str, str]]]:
    lists = tenant_settings.of(link).lists
    entries = lists.ingress_peers if direction is Direction.INGRESS else lists.egress_peers
    labels = sorted(one for one in entries if "=" in one)
    selectors = [dict([one.split("=", 1)]) for one in labels]
    return address_lists.networks(frozenset(entries.difference(labels))), selectors


def _inside(link: Link) -> tuple[Network, ...]:
    isolation = tenant_settings.of(link).isolation
    return () if isolation is None else address_lists.networks(isolation.inside)


def _without_inside(block: Peer, inside: tuple[Network, ...]) -> Iterator[Peer]:
    whole = address_lists.network(block["cidr"])
    if not any(_is_in(whole, one) for one in inside):
        yield _block(whole, dict.fromkeys([*_exceptions(block), *(one for one in inside if _is_in(one, whole))]))


def _exceptions(block: Peer) -> list[Network]:
    return [address_lists.network(one) for one in block.get("except") or ()]


def _is_in(one: Network, other: Network) -> bool:
    return one.version == other.version and one.prefixlen >= other.prefixlen and one.overlaps(other)


def _block(network: Network, exceptions: Any = ()) -> Peer:
    found = [str(one) for one in exceptions]
    return {"ipBlock": {"cidr": str(network), "except": found} if found else {"cidr": str(network)}}
