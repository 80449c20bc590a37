"""Golden files: `tests/golden/<mode>/<kind>/<case>`, what a mode makes of an object, as a reader would check it.

`upper.yaml` and `told.yaml` (what changed below since) are given, `lower.yaml` and `back.yaml` are the answers.
A volume goes the other way, from `lower.yaml` to `upper.yaml`. `python tests/golden_files.py` writes all answers anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Key, Link
from hansa.model.translation import ingress
from hansa.model.translation.settings import Settings
from hansa.modes import tensile, tensile_settings
from hansa.nodes.settings import Settings as NodeSettings

ROOT = Path(__file__).parent / "golden"
LINK = Link(
    upper="home",
    upper_id="e4a1b7c2-52f0-4d0e-8f3f-d0f4f3c5a111",
    lower="r1",
    settings=Settings(
        node="vn1",
        node_labels={keys.CLUSTER_ID: "r1", "type": "virtual-kubelet", "kubernetes.io/hostname": "vn1"},
        api_host="api.home.example.com",
        api_port="6443",
    ),
)
SOURCE = tensile_settings.Source()
LOWER = tensile_settings.Lower(SOURCE, NodeSettings("vn1", LINK.lower), LINK.settings)
TENSILE = tensile.mode(tensile_settings.Settings(SOURCE, (LOWER,)))
UPWARDS = tensile.volumes(LINK.upper_id)
KINDS = Mode(
    "kinds",
    {
        resources.INGRESSES: Rule(
            resources.INGRESSES, down_patches=ingress.ingress_patches, up_patches=ingress.ingress_told
        )
    },
)
# Who carries what, by folder. A kind that no mode carries yet is among the kinds.
MODES: Mapping[str, Mapping[Resource, Mode]] = {
    "tensile": {**dict.fromkeys(TENSILE.rules, TENSILE), resources.PERSISTENT_VOLUMES: UPWARDS},
    "kinds": {resources.INGRESSES: KINDS},
}


@dataclass(frozen=True)
class Case:
    """One folder."""

    folder: Path

    def __str__(self) -> str:
        return str(self.folder.relative_to(ROOT))

    @property
    def mode(self) -> Mode:
        kind, modes = self.folder.parent.name, MODES[self.folder.parent.parent.name]
        return next(mode for resource, mode in modes.items() if resource.kind.lower() == kind)

    @property
    def rule(self) -> Rule:
        return next(r for r in self.mode.rules.values() if r.resource.kind.lower() == self.folder.parent.name)

    @property
    def source(self) -> Object:
        """The object that travels."""
        return Object.of(self.read("lower.yaml" if self.mode is UPWARDS else "upper.yaml"))

    def desired(self, source: Object) -> Object:
        """Its copy as it should be."""
        return self.mode.desired(source, Key(LINK.upper, self.rule.resource, *source.key), LINK)

    def read(self, name: str) -> dict[str, Any]:
        """A file of the folder; empty if it is not there."""
        path = self.folder / name
        return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}

    def answers(self) -> dict[str, dict[str, Any]]:
        """What the files should say that are not given."""
        source = self.source
        wanted = self.desired(source)
        copy = {"upper.yaml" if self.mode is UPWARDS else "lower.yaml": self.rule.at_birth(wanted).to_dict()}
        if not (told := self.read("told.yaml")):
            return copy
        lower, back = Object.of(merged(wanted.to_dict(), told)), source.to_dict()
        for part in self.rule.up_patches(source, lower, LINK):
            back = merged(back, part.patch)
        return copy | {"back.yaml": back}


def cases() -> list[Case]:
    """All folders of all modes."""
    return [Case(folder) for folder in sorted(ROOT.glob("*/*/*"))]


def merged(value: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch applied, as RFC 7386 says it."""
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
    """Write all answers as they are now."""
    for case in cases():
        for name, answer in case.answers().items():
            text = yaml.safe_dump(answer, sort_keys=True, width=120)
            (case.folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
