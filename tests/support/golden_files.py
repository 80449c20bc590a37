"""Golden files of translations: `tests/golden/<mode>/<kind>/<case>`.

Inputs are `upper.yaml`, `told.yaml` (later changes of the lower object) and `around.yaml` (objects that a rule reads).
Outputs are `lower.yaml` and `back.yaml`. Kinds that are synced up only go from `lower.yaml` to `upper.yaml`.
`python tests/support/golden_files.py` rewrites all outputs.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from hansa.kube import resources
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Key, Link
from hansa.model.translation.common import ingress
from hansa.model.translation.common.link_settings import LinkSettings
from hansa.model.translation.federation.endpoints import PodNetwork
from hansa.model.translation.federation.target_link import TargetLink
from hansa.model.translation.tenant import tenant_lists
from hansa.model.translation.tenant.tenant_lists import TenantLists
from hansa.modes import admiralty, tensile, tensile_settings, virtualcluster, virtualcluster_settings
from hansa.modes.admiralty_settings import AdmiraltySettings
from hansa.modes.virtualcluster_settings import TenantSettings
from hansa.nodes.settings import NodeSettings
from surroundings import Surroundings

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it is there
ROOT = Path(__file__).parents[1] / "golden"
LINK_SETTINGS = LinkSettings(
    node="vn1",
    node_labels={keys.CLUSTER_ID: "r1", "type": "virtual-kubelet", "kubernetes.io/hostname": "vn1"},
    api_host="api.home.example.com",
    api_port="6443",
)
LINK = Link(upper="home", upper_id="e4a1b7c2-52f0-4d0e-8f3f-d0f4f3c5a111", lower="r1", settings=LINK_SETTINGS)
SOURCE = CredentialSource()
LOWER = tensile_settings.LowerSettings(SOURCE, NodeSettings("vn1", LINK.lower), LINK_SETTINGS)
TENSILE = tensile.mode(tensile_settings.TensileSettings(SOURCE, (LOWER,)))
UPWARDS = tensile.volumes(LINK.upper_id)
KINDS = Mode(
    "kinds",
    {
        resources.INGRESSES: Rule(
            resources.INGRESSES, down_patches=ingress.ingress_patches, up_patches=ingress.ingress_up_patches
        )
    },
)
TENANT = Link(
    upper="default-fd1b34-vc-sample-1",
    upper_id="7d2e9f10-9a51-4c55-8a77-0f6f7f0d2b01",
    lower="super",
    settings=TenantSettings(
        key="default-fd1b34-vc-sample-1",
        name="vc-sample-1",
        namespace="default",
        uid="d64ea0c0-91f8-46f5-8643-c0cab32ab0cd",
        meta="1f5d0c5e-6b55-4c1a-9a43-7b0f3f9f6c02",
        opaque_prefixes=("secret.example.com",),
        transparent_prefixes=("told.example.com",),
        lists=tenant_lists.default()
        | TenantLists(
            endpoint_addresses=frozenset({"198.51.100.0/29"}),
            external_names=frozenset({"*.example.com"}),
        ),
        api_addresses=frozenset({"192.0.2.9"}),
        service_ranges=(ipaddress.ip_network("10.0.0.0/8"),),
    ),
)
SUPER = Link("super", "1f5d0c5e-6b55-4c1a-9a43-7b0f3f9f6c02", TENANT.upper, TENANT.settings)
_EVERYTHING = virtualcluster_settings.VirtualClusterSettings()
VIRTUALCLUSTER = virtualcluster.mode(_EVERYTHING)
SHARED = virtualcluster.shared(_EVERYTHING)
_TARGET_NODE = "admiralty-namespace-shop-c2"
TARGET = Link(
    upper="upper",
    upper_id=LINK.upper_id,
    lower=_TARGET_NODE,
    settings=TargetLink(target="c2", node=_TARGET_NODE, namespace="shop", source="cluster1", source_id=LINK.upper_id),
    nodes=frozenset({_TARGET_NODE}),
)
ADMIRALTY = admiralty.mode(
    AdmiraltySettings(
        follows_claims=True,
        follows_service_accounts=True,
        pod_networks=(PodNetwork("", ipaddress.ip_network("10.0.0.0/8")),),
    )
)


@dataclass(frozen=True)
class Way:
    """The mode, link and direction in which objects of a kind are synced."""

    mode: Mode
    link: Link
    is_upward: bool = False


def _ways(mode: Mode, link: Link, *, is_upward: bool = False) -> dict[Resource, Way]:
    return {rule.resource: Way(mode, link, is_upward) for rule in mode.rules.values() if rule.is_synced}


# The kinds of each folder. `kinds` has those that no mode syncs yet.
WAYS: Mapping[str, Mapping[Resource, Way]] = {
    "admiralty": _ways(ADMIRALTY, TARGET),
    "tensile": _ways(UPWARDS, LINK, is_upward=True) | _ways(TENSILE, LINK),
    "kinds": {resources.INGRESSES: Way(KINDS, LINK)},
    "virtualcluster": _ways(VIRTUALCLUSTER, TENANT) | _ways(SHARED, SUPER, is_upward=True),
}


@dataclass(frozen=True)
class Case:
    """One folder."""

    folder: Path

    def __str__(self) -> str:
        return str(self.folder.relative_to(ROOT))

    @property
    def way(self) -> Way:
        kind, ways = self.folder.parent.name, WAYS[self.folder.parent.parent.name]
        return next(way for resource, way in ways.items() if resource.kind.lower() == kind)

    @property
    def mode(self) -> Mode:
        return self.way.mode

    @property
    def link(self) -> Link:
        """The link, with the objects that the rule reads."""
        around = self.read("around.yaml")
        above, below = ([Object.of(one) for one in around.get(side) or ()] for side in ("above", "below"))
        reads = self.rule.reads
        declared = () if reads is None else reads.objects(self.source)
        return replace(self.way.link, lookups=Surroundings(above, below).found(declared))

    @property
    def rule(self) -> Rule:
        return next(r for r in self.mode.rules.values() if r.resource.kind.lower() == self.folder.parent.name)

    @property
    def given(self) -> str:
        """The file with the object that is synced."""
        return "lower.yaml" if self.way.is_upward else "upper.yaml"

    @property
    def source(self) -> Object:
        """The object that is synced."""
        return Object.of(self.read(self.given))

    def desired(self, source: Object) -> Object:
        """Its desired copy."""
        return self.mode.desired(source, Key(self.link.upper, self.rule.resource, *source.key), self.link)

    def read(self, name: str) -> dict[str, Any]:
        """A file of the folder; empty if it is not there."""
        path = self.folder / name
        return yaml.load(path.read_bytes(), LOADER) if path.exists() else {}

    def answers(self) -> dict[str, dict[str, Any]]:
        """The contents of the output files, by name."""
        source = self.source
        wanted = self.desired(source)
        created = wanted if self.rule.on_create is None else self.rule.on_create(wanted)
        copy = {"upper.yaml" if self.way.is_upward else "lower.yaml": created.to_dict()}
        if not (changes := self.read("told.yaml")):
            return copy
        lower, back = Object.of(merged(wanted.to_dict(), changes)), source.to_dict()
        up_patches = self.rule.up_patches
        assert up_patches is not None, f"{self.folder} has told.yaml, but nothing of its kind is synced up"
        for part in up_patches(source, lower, self.link):
            back = merged(back, part.patch)
        return copy | {"back.yaml": back}


def cases() -> list[Case]:
    """All folders of all modes."""
    return [Case(folder) for folder in sorted(ROOT.glob("*/*/*"))]


def merged(value: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch (RFC 7386)."""
    result = dict(value)
    for name, new in patch.items():
        if new is None:
            result.pop(name, None)
        elif isinstance(new, Mapping):
            old = result.get(name)
            result[name] = merged(old if isinstance(old, Mapping) else {}, new)
        else:
            result[name] = new
    return result


def rewrite() -> None:
    """Write all output files."""
    for case in cases():
        for name, answer in case.answers().items():
            text = yaml.safe_dump(answer, sort_keys=True, width=120)
            (case.folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
