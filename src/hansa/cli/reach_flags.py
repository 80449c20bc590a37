"""Flags of vc-syncer with what pods of tenants reach: their DNS, and their API server."""

import argparse
import ipaddress
import re
from typing import Any

from hansa.cli import go_values
from hansa.tenancy.syncing import dns_objects
from hansa.tenancy.syncing.api_relay import RelaySettings
from hansa.tenancy.syncing.dns_objects import DnsSettings

_RELAY = re.compile(r"(?P<host>.+?)(:(?P<first>\d{1,5})-(?P<last>\d{1,5}))?")
LEAST_PORT, MAX_PORT = 1024, 65535


def add_to(group: Any) -> None:
    """Add the flags."""
    go_values.add_boolean(
        group,
        "--tenant-dns",
        default=True,
        help="create CoreDNS in the control planes of tenants that have no Service kube-system/kube-dns, except in"
        " existing clusters; the annotation tenancy.x-k8s.io/dns of a VirtualCluster overrides it (default true)",
    )
    group.add_argument(
        "--tenant-dns-image", default=dns_objects.IMAGE, metavar="IMAGE", help="its image (default %(default)s)"
    )
    group.add_argument(
        "--tenant-dns-forward",
        default=dns_objects.NODE_NAME_SERVERS,
        metavar="ADDRESSES",
        help="name servers that it asks for names outside of the cluster, as CoreDNS takes them; empty for none"
        " (default %(default)s, those of the node)",
    )
    ports = RelaySettings("").ports
    group.add_argument(
        "--api-relay-address",
        type=_relay,
        metavar="IP[:FIRST-LAST]",
        help="address of this program at which pods reach API servers of tenants that do not run in their super"
        f" cluster, each at a port of the range (default: none, direct connections; {ports[0]}-{ports[-1]})",
    )


def dns(arguments: argparse.Namespace) -> DnsSettings:
    """The DNS of tenants."""
    return DnsSettings(arguments.tenant_dns, arguments.tenant_dns_image, arguments.tenant_dns_forward.strip())


def _relay(text: str) -> RelaySettings | None:
    """Parse --api-relay-address; empty for none."""
    if not text:
        return None
    found = _RELAY.fullmatch(text)
    try:
        address = ipaddress.ip_address(found["host"].strip("[]") if found else "")
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not an IP address, or one with ports: 10.0.0.5:20000-29999'
        ) from None
    if address.is_loopback or address.is_unspecified:
        raise argparse.ArgumentTypeError(f'"{text}" is not an address that pods reach')
    if found is None or found["first"] is None:
        return RelaySettings(str(address))
    first, last = int(found["first"]), int(found["last"])
    if not LEAST_PORT <= first <= last <= MAX_PORT:
        raise argparse.ArgumentTypeError(f'"{text}" has no ports from {LEAST_PORT} to {MAX_PORT} in order')
    return RelaySettings(str(address), range(first, last + 1))
