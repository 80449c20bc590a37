"""Flags of vc-syncer with the lists of what tenants may name in super clusters. Annotations add to them for one."""

import argparse
from typing import Any

from hansa.cli import go_values
from hansa.model.translation.tenant import address_lists, key_patterns, tenant_lists
from hansa.model.translation.tenant import opaque_labels as labels
from hansa.model.translation.tenant.tenant_lists import TenantLists
from hansa.model.translation.tenant.tenant_settings import Isolation
from hansa.modes.virtualcluster_settings import InvalidSettings


def add_to(group: Any) -> None:
    """Add the flags."""
    for kind in tenant_lists.KINDS:
        default = ",".join(kind.default)
        group.add_argument(
            kind.flag,
            default=default,
            metavar="LIST",
            help=f"comma-separated {kind.help}; each is {kind.entries} (default {default or 'none'})",
        )
    group.add_argument(
        "--opaque-labels",
        default=",".join(sorted(labels.DEFAULT)),
        metavar="LIST",
        help="comma-separated labels that are not synced down, since controllers of super clusters obey them; each is"
        " KEY or PREFIX* (default: see docs/security.md)",
    )

    go_values.add_negatable(
        group, "--isolate-tenants", help="keep tenants' pods apart by NetworkPolicies in super clusters"
    )
    for flag, entries, what in (
        ("--inside-ranges", address_lists.PRIVATE, "ranges of pods, nodes, Services and API servers of super clusters"),
        ("--name-servers", address_lists.EVERYTHING, "addresses that tenants' pods reach at port 53"),
    ):
        default = ",".join(sorted(entries))
        group.add_argument(flag, default=default, metavar="CIDRS", help=f"comma-separated {what} (default {default})")


def isolation(arguments: argparse.Namespace) -> Isolation | None:
    """How tenants' pods are kept apart; None if they are not."""
    inside, servers = (_networks(arguments, name) for name in ("inside_ranges", "name_servers"))
    return Isolation(inside, servers) if arguments.isolate_tenants else None


def _networks(arguments: argparse.Namespace, name: str) -> frozenset[str]:
    entries = frozenset(one.strip() for one in getattr(arguments, name).split(",")) - {""}
    if invalid := sorted(one for one in entries if not address_lists.is_network(one)):
        raise InvalidSettings(f'--{name.replace("_", "-")}: "{invalid[0]}" is not CIDR')
    return entries


def lists(arguments: argparse.Namespace) -> TenantLists:
    """The lists of all tenants."""
    found, invalid = tenant_lists.parse({kind.key: getattr(arguments, kind.field) for kind in tenant_lists.KINDS})
    for kind in tenant_lists.KINDS:
        if kind.key in invalid:
            raise InvalidSettings(f"{kind.flag}: {invalid[kind.key]}")
    return found


def opaque_labels(arguments: argparse.Namespace) -> frozenset[str]:
    """The labels that are not synced down."""
    patterns = frozenset(one.strip() for one in arguments.opaque_labels.split(",")) - {""}
    if invalid := sorted(one for one in patterns if ":" in one or not key_patterns.is_pattern(one)):
        raise InvalidSettings(f'--opaque-labels: "{invalid[0]}" is not KEY or PREFIX*')
    return patterns
