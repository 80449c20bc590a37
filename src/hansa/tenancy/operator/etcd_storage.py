"""Where the etcd of a tenant keeps its data: in the claims of its ClusterVersion, or in an emptyDir.

Pure. Used for the StatefulSet of etcd. The storage of an existing StatefulSet is never changed: its claim templates are
immutable, and another volume would start without data.
"""

import copy
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hansa.kube.objects import Object

Spec = dict[str, Any]
_TEMPLATES = "volumeClaimTemplates"


class Medium(StrEnum):
    """Values of --etcd-storage."""

    CLAIM = "claim"  # the claims of the ClusterVersion
    EMPTY_DIR = "emptyDir"  # lost with the pod


@dataclass(frozen=True, slots=True)
class EtcdStorage:
    """The storage of new StatefulSets. The class is that of claims that name none."""

    medium: Medium = Medium.CLAIM
    storage_class: str = ""

    def apply(self, spec: Spec, live: Object | None) -> Spec:
        """The spec of a StatefulSet with this storage, or with that of the live one."""
        spec = copy.deepcopy(spec)
        if live is not None:
            return _kept(spec, live.spec)
        if self.medium is Medium.EMPTY_DIR:
            return _on_volumes(spec, {name: {"name": name, "emptyDir": {}} for name in _names(spec)})
        if self.storage_class:
            for template in spec.get(_TEMPLATES) or ():
                template["spec"] = {"storageClassName": self.storage_class} | template["spec"]
        return spec


def _kept(spec: Spec, live: Spec) -> Spec:
    """The spec with the claims and volumes of the live StatefulSet."""
    claims, volumes = _names(live), _volumes(live)
    replaced = {name: volumes.get(name, {"name": name, "emptyDir": {}}) for name in _names(spec) - claims}
    spec = _on_volumes(spec, replaced)
    if claims:
        pod = spec["template"]["spec"]
        pod["volumes"] = [one for one in pod.get("volumes") or () if one["name"] not in claims]
        spec[_TEMPLATES] = live[_TEMPLATES]
    return spec


def _on_volumes(spec: Spec, volumes: dict[str, Spec]) -> Spec:
    """The spec without claims, on these volumes. A new pod may start without data, so none is replaced by itself."""
    if not volumes:
        return spec
    pod = spec["template"]["spec"]
    spec.pop(_TEMPLATES, None)
    pod["volumes"] = [*(one for one in pod.get("volumes") or () if one["name"] not in volumes), *volumes.values()]
    spec["updateStrategy"] = {"type": "OnDelete"}
    return spec


def _names(spec: Spec) -> set[str]:
    return {one["metadata"]["name"] for one in spec.get(_TEMPLATES) or ()}


def _volumes(spec: Spec) -> dict[str, Spec]:
    return {one["name"]: one for one in spec["template"]["spec"].get("volumes") or ()}


DEFAULT = EtcdStorage()
