"""Whether versions fit: of API servers among each other, of our definitions, and of the images of our components."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import hansa
from hansa.app.doctor import finding
from hansa.app.doctor.finding import Finding
from hansa.app.doctor.visiting import Role, Visit
from hansa.app.status import workloads
from hansa.app.status.reading import Reader
from hansa.federation import installing as federation
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.tenancy import installing as tenancy

CHECK: Final = "versions"
OLDEST: Final = 28  # the minor version of Kubernetes from which on all that is used exists
SKEW: Final = 3  # minor versions, as far as a kubelet may be behind its API server
_MINOR: Final = re.compile(r"v?1\.(\d+)")


async def examine(visits: Iterable[Visit], reader: Reader) -> list[Finding]:
    """The findings."""
    definitions = {one.name: one for one in (await reader.list(resources.CUSTOM_RESOURCE_DEFINITIONS)).items}
    found = [*servers(visits), *families(definitions)]
    return [*found, *images((await workloads.found_in(reader)).items)]


def servers(visits: Iterable[Visit]) -> Iterator[Finding]:
    """Findings about the versions of API servers."""
    minors = {one: minor for one in visits if one.error is None and (minor := minor_of(one.version)) is not None}
    old = [one for one, minor in minors.items() if minor < OLDEST]
    for one in old:
        yield finding.problem(
            CHECK,
            f"{one} runs Kubernetes {one.version}",
            why=f"Hansa needs 1.{OLDEST} or later",
            remedy="upgrade the cluster",
        )
    mine = next((minor for one, minor in minors.items() if one.role is Role.CLUSTER), None)
    apart = [one for one, minor in minors.items() if mine is not None and abs(minor - mine) > SKEW]
    for one in apart:
        yield finding.warning(
            CHECK,
            f"{one} runs Kubernetes {one.version}, more than {SKEW} minor versions from 1.{mine} of the cluster itself",
            why="fields of newer objects are lost in the older cluster",
            remedy="upgrade the older one",
        )
    if minors and not old and not apart:
        yield finding.fine(CHECK, f"{len(minors)} API servers run 1.{min(minors.values())} to 1.{max(minors.values())}")


def minor_of(version: str) -> int | None:
    """The minor version."""
    found = _MINOR.match(version)
    return int(found[1]) if found else None


def families(installed: Mapping[str, Object]) -> Iterator[Finding]:
    """Findings about our definitions, if one of a family is installed."""
    for wanted in (tenancy.definitions(), federation.definitions()):
        if any(one.name in installed for one in wanted):
            bad = [found for one in wanted if (found := definition(one, installed.get(one.name)))]
            yield from bad or [
                finding.fine(CHECK, f"definitions of {wanted[0].spec['group']} are installed and served")
            ]


def definition(wanted: Object, found: Object | None) -> Finding | None:
    """A finding about one of our definitions; None if it is as it should be."""
    remedy = "start the program of this version without --no-install, or apply the definitions of this version"
    if found is None:
        why = "programs that read these objects do not start"
        return finding.problem(CHECK, f"CustomResourceDefinition {wanted.name} is missing", why=why, remedy=remedy)
    served = {one["name"]: one for one in found.spec.get("versions") or () if one.get("served")}
    for version in wanted.spec["versions"]:
        if version["name"] not in served:
            what = f"CustomResourceDefinition {wanted.name} does not serve {version['name']}"
            return finding.problem(CHECK, what, why="programs cannot read these objects", remedy=remedy)
        lacks = sorted(
            fields(version["schema"]["openAPIV3Schema"])
            - fields(served[version["name"]].get("schema", {}).get("openAPIV3Schema", {}))
        )
        if lacks:
            what = f"CustomResourceDefinition {wanted.name} is that of another version: it lacks {', '.join(lacks[:3])}"
            return finding.problem(CHECK, what, why="the API server drops these fields silently", remedy=remedy)
    established = {one.get("type"): one.get("status") for one in found.status.get("conditions") or ()}
    if established.get("Established") != "True":
        what = f"CustomResourceDefinition {wanted.name} is not Established"
        return finding.problem(
            CHECK,
            what,
            why="its objects are not served",
            remedy=f"see its conditions: kubectl describe crd {wanted.name}",
        )
    return None


def fields(schema: Mapping[str, Any], at: str = "") -> set[str]:
    """The paths of all fields of a schema."""
    found: set[str] = set()
    for name, below in (schema.get("properties") or {}).items():
        found |= {f"{at}.{name}", *fields(below, f"{at}.{name}")}
    items = schema.get("items")
    return found | (fields(items, f"{at}[]") if isinstance(items, dict) else set())


def images(components: Iterable[Object]) -> Iterator[Finding]:
    """Findings about the versions of our components."""
    for one in components:
        tag = workloads.image(one).partition("@")[0].rpartition("/")[2].partition(":")[2]
        if tag and tag.removeprefix("v") != hansa.__version__:
            yield finding.warning(
                CHECK,
                f"{one.kind} {one.key} runs image {workloads.image(one)}; this command is version {hansa.__version__}",
                why="components of different versions may disagree about the objects that they share",
                remedy="upgrade the component, or use the command of its version",
            )
