"""--feature-gates: the gates of VirtualCluster. One has an effect, the others are what Hansa always or never does."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hansa.cli import go_values, unused_flags

POOLING: Final = "SuperClusterPooling"
# What Hansa does whatever these gates say.
UNUSED: Final[Mapping[str, str]] = {
    "SuperClusterServiceNetwork": "Services keep the tenant's addresses where the super cluster has its range",
    "SuperClusterLabelling": "copies always have the labels of their tenant",
    "SuperClusterLabelFilter": "only labelled copies are watched",
    "VNodeProviderService": "use --vn-agent-address of vc-syncer",
    "VNodeProviderPodIP": "use --vn-agent-address of vc-syncer",
    "TenantAllowDNSPolicy": "pods with tenancy.x-k8s.io/disable.dnsPolicyMutation always keep their dnsPolicy",
    "ClusterVersionPartialUpgrade": "an upgrade always changes only what differs",
    "TenantAllowResourceNoSync": "every object of a synced kind is synced",
    "DisableCRDPreserveUnknownFields": "unknown fields are always kept",
    "RootCACertConfigMapSupport": "kube-root-ca.crt is always synced under a name of its own",
    "VServiceExternalIP": "externalIPs of Services are never set",
    "KubeAPIAccessSupport": "pods always have tokens of their tenant",
    "SyncTenantPVCStatusPhase": "the status of claims is always synced",
}


def add_to(group: Any, *, has_pooling: bool) -> None:
    """Add --feature-gates; with `has_pooling`, SuperClusterPooling has an effect."""
    effect = f"{POOLING}=true if the super cluster is one of a pool" if has_pooling else "no gate has an effect"
    group.add_argument(
        "--feature-gates",
        action=_Gates,
        type=parse,
        default={},
        has_pooling=has_pooling,
        metavar="GATE=true|false,…",
        help=f"feature gates of VirtualCluster: {effect} (default none)",
    )


def parse(text: str) -> dict[str, bool]:
    """Parse GATE=BOOLEAN pairs as Go programs do."""
    gates: dict[str, bool] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            raise argparse.ArgumentTypeError(f'"{pair}" has no value: use {name}=true or {name}=false')
        if name != POOLING and name not in UNUSED:
            known = ", ".join((POOLING, *UNUSED))
            raise argparse.ArgumentTypeError(f'unknown feature gate "{name}"; known: {known}')
        try:
            gates[name] = go_values.boolean(value)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{name}: {error}") from None
    return gates


class _Gates(argparse.Action):
    """Merges the gates of several --feature-gates; the last value of a gate counts."""

    def __init__(self, *arguments: Any, has_pooling: bool, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.has_pooling = has_pooling

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | Mapping[str, bool] | None,
        option_string: str | None = None,
    ) -> None:
        gates = dict(values) if isinstance(values, Mapping) else {}
        setattr(namespace, self.dest, {**getattr(namespace, self.dest), **gates})
        for name in gates:
            if name in UNUSED or not self.has_pooling:
                reason = UNUSED.get(name, "vc-syncer and vc-scheduler serve the pool")
                unused_flags.note(namespace, f"{option_string} {name}", reason)
