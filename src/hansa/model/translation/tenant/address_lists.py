"""Lists of addresses and host names: CIDRs, and patterns such as `shop.example.com`, `*.example.com` and `*`."""

import functools
import ipaddress
import re
from typing import Final

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_HOST: Final = re.compile(r"\*|(?:\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def is_network(text: str) -> bool:
    """Whether a text is an address or a CIDR."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


@functools.lru_cache(maxsize=256)
def networks(entries: frozenset[str]) -> tuple[Network, ...]:
    """The networks of a list."""
    return tuple(sorted(map(ipaddress.ip_network, entries), key=lambda one: (one.version, one)))


def has_address(entries: frozenset[str], text: str) -> bool:
    """Whether a list has an address. Addresses that belong to the node itself are in no list."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        return False
    return any(address.version == one.version and address in one for one in networks(entries))


def is_host_pattern(text: str) -> bool:
    """Whether a text is a pattern of host names."""
    return _HOST.fullmatch(text) is not None


def has_host(patterns: frozenset[str], host: str) -> bool:
    """Whether a pattern matches a host name, which may be a wildcard itself; `*.a` matches at any depth."""
    name = host.lower().rstrip(".")
    suffixes = tuple(one[1:] for one in patterns if one.startswith("*."))
    return "*" in patterns or name in patterns or (bool(name) and name.endswith(suffixes))
