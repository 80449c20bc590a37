"""Lists of addresses and host names: CIDRs, and patterns such as `shop.example.com`, `*.example.com` and `*`."""

import functools
import ipaddress
import re
from typing import Final

from hansa.model.translation.common import endpoint_addresses
from hansa.model.translation.common.endpoint_addresses import Address, Network

# Private and link-local ranges, in which clusters have their pods, nodes and Services.
PRIVATE: Final = frozenset(
    {
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"),
        *("fc00::/7", "fe80::/10", "64:ff9b::/96"),  # the last is translated to IPv4
    }
)
_MAPPED: Final = 96  # bits before an IPv4 address in IPv6 notation
EVERYTHING: Final = frozenset({"0.0.0.0/0", "::/0"})
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*=[A-Za-z0-9._-]*")
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
    """Whether an endpoint may have an address by a list. Those of the node itself are in no list."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return endpoint_addresses.is_allowed(address, networks(entries))


def network(text: str) -> Network:
    """A CIDR, which may have host bits. One of IPv4 addresses in IPv6 notation is of IPv4: it means the same hosts."""
    found = ipaddress.ip_network(text, strict=False)
    first = _unmapped(found.network_address)
    if first.version == found.version or found.prefixlen < _MAPPED:
        return found
    return ipaddress.ip_network((str(first), found.prefixlen - _MAPPED))


def _unmapped(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def is_host_pattern(text: str) -> bool:
    """Whether a text is a pattern of host names."""
    return _HOST.fullmatch(text) is not None


def has_host(patterns: frozenset[str], host: str) -> bool:
    """Whether a pattern matches a host name, which may be a wildcard itself; `*.a` matches at any depth."""
    name = host.lower().rstrip(".")
    suffixes = tuple(one[1:] for one in patterns if one.startswith("*."))
    return "*" in patterns or name in patterns or (bool(name) and name.endswith(suffixes))


def is_peer(text: str) -> bool:
    """Whether a text names a peer of pods: a CIDR, or a label of namespaces."""
    return is_network(text) or _LABEL.fullmatch(text) is not None
