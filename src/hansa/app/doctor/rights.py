"""The rights that each component needs: from the roles that are installed with it. Pure but for files."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansa.app.installation.rendering import IMAGE, Installation, Mode
from hansa.kube.objects import NamespacedName, Object
from hansa.tenancy.pool import join_manifests

POOL_ACCOUNT: Final = join_manifests.ACCOUNT  # in super clusters that have joined a pool
NOT_REVIEWED: Final = frozenset({"escalate", "bind", "approve", "impersonate"})  # checked at other objects' writes


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One right, as an access review asks for it; an empty namespace means all namespaces."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    name: str = ""
    namespace: str = ""

    def attributes(self) -> dict[str, str]:
        """The resourceAttributes of an access review."""
        return {
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "name": self.name,
            "namespace": self.namespace,
        }

    def __str__(self) -> str:
        resource = "/".join(filter(None, (self.resource, self.subresource)))
        named = f"{resource}.{self.group}" if self.group else resource
        return " ".join(filter(None, (self.verb, named, self.name, self.namespace and f"in {self.namespace}")))


def of_mode(mode: Mode, namespace: str) -> dict[NamespacedName, list[Right]]:
    """The rights of all service accounts of a mode that is installed in a namespace."""
    return _granted(Installation(mode, namespace).objects(IMAGE))


def of_pool() -> dict[NamespacedName, list[Right]]:
    """The rights of the service account of `hansa join`."""
    return _granted(join_manifests.account())


def of_component(name: str) -> list[Right]:
    """The rights of a component by the name of its service account, in any mode; empty if there is none."""
    all_modes = [of_mode(mode, "kube-system") for mode in Mode]
    found = {
        right for mode in [*all_modes, of_pool()] for key, some in mode.items() if key.name == name for right in some
    }
    return sorted(found)


def components() -> list[str]:
    """The names that `of_component` knows."""
    return sorted({key.name for mode in Mode for key in of_mode(mode, "kube-system")} | {POOL_ACCOUNT.name})


def _granted(objects: Iterable[Object]) -> dict[NamespacedName, list[Right]]:
    objects = list(objects)
    roles = {(one.kind, one.key): one for one in objects if one.kind in ("Role", "ClusterRole")}
    found: dict[NamespacedName, list[Right]] = {one.key: [] for one in objects if one.kind == "ServiceAccount"}
    for binding in objects:
        if not binding.kind.endswith("RoleBinding"):
            continue
        reference = binding.get("roleRef")
        place = binding.namespace if reference["kind"] == "Role" else ""
        role = roles.get((reference["kind"], NamespacedName(place, reference["name"])))
        for subject in binding.get("subjects") or () if role else ():
            account = NamespacedName(subject.get("namespace", ""), subject["name"])
            assert role is not None
            if account in found:
                rules = role.get("rules") or ()
                found[account] += [right for rule in rules for right in _rights(rule, binding.namespace)]
    return {account: sorted(set(some)) for account, some in found.items() if some}


def _rights(rule: Mapping[str, Any], namespace: str) -> Iterator[Right]:
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            plural, _, subresource = resource.partition("/")
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames") or ("",):
                    if verb not in NOT_REVIEWED:
                        yield Right(verb, group, plural, subresource, name, namespace)
