"""Addresses that endpoints may have although another party writes them: those in networks of an administrator. Pure."""

import ipaddress
from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def is_allowed(address: Address, networks: Iterable[Network]) -> bool:
    """Whether an endpoint may have it. The API server refuses a slice with one of the special ones as a whole.

    An IPv4 address in IPv6 notation leads to the same host as without, so it would pass a list of the other family.
    """
    is_special = address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified
    is_mapped = isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None
    return not is_special and not is_mapped and any(address in network for network in networks)
