"""Discovery: the resources of an API server with their verbs and subresources, in its order of preference."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from hansa.kube import decoding
from hansa.kube.client import Client
from hansa.kube.errors import Unreachable
from hansa.kube.resource import Resource

T = TypeVar("T")
# Aggregated discovery needs two requests (1.30, 1.26 as v2beta1); servers without it answer with a plain list.
AGGREGATED = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A resource that a server serves."""

    resource: Resource
    verbs: frozenset[str]
    subresources: frozenset[str]
    short_names: tuple[str, ...] = ()


class Catalog:
    """All resources of a server, in its order of preference."""

    def __init__(self, offers: Iterable[Offer]) -> None:
        self.offers = tuple(offers)

    def find(self, *, kind: str = "", plural: str = "", group: str | None = None, version: str = "") -> Offer | None:
        """The first resource that matches all given values; `group=""` is the core group, None is any group."""
        return next(
            (
                offer
                for offer in self.offers
                if (not kind or offer.resource.kind == kind)
                and (not plural or offer.resource.plural == plural)
                and (group is None or offer.resource.group == group)
                and (not version or offer.resource.version == version)
            ),
            None,
        )


class _GroupVersionKind(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Subresource(msgspec.Struct, frozen=True):
    subresource: str


class _Resource(msgspec.Struct, frozen=True, rename="camel"):
    resource: str
    response_kind: _GroupVersionKind | None = None
    scope: str = "Namespaced"
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    subresources: tuple[_Subresource, ...] = ()


class _Version(msgspec.Struct, frozen=True):
    version: str
    resources: tuple[_Resource, ...] = ()


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Group(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    versions: tuple[_Version, ...] = ()


class _Aggregated(msgspec.Struct, frozen=True):
    kind: str = ""
    items: tuple[_Group, ...] = ()


class _PlainGroupVersion(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _PlainGroup(msgspec.Struct, frozen=True, rename="camel"):
    versions: tuple[_PlainGroupVersion, ...]
    preferred_version: _PlainGroupVersion


class _PlainGroups(msgspec.Struct, frozen=True):
    groups: tuple[_PlainGroup, ...] = ()


class _PlainResource(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    kind: str = ""
    namespaced: bool = True
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()


class _PlainResources(msgspec.Struct, frozen=True):
    resources: tuple[_PlainResource, ...] = ()


async def discover(client: Client) -> Catalog:
    """Discover all resources of a server."""
    offers: list[Offer] = []
    for path in ("/api", "/apis"):
        response = await client.request(
            "GET", path, doing="discover resources", accept=f"{AGGREGATED},application/json"
        )
        answer = _parsed(response.body, _Aggregated)
        if answer.kind != "APIGroupDiscoveryList":
            return await discover_plainly(client)
        offers += _aggregated(answer)
    return Catalog(offers)


async def discover_plainly(client: Client) -> Catalog:
    """The same for a server without aggregated discovery: one request per group and version."""
    response = await client.request("GET", "/apis", doing="discover resources")
    groups = _parsed(response.body, _PlainGroups).groups
    versions = ["v1"]
    for group in groups:
        preferred = group.preferred_version
        versions += [preferred.group_version, *(v.group_version for v in group.versions if v != preferred)]
    return Catalog([offer for version in versions for offer in await _plain(client, version)])


async def _plain(client: Client, group_version: str) -> list[Offer]:
    path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
    try:
        response = await client.request("GET", path, doing=f"discover resources of {group_version}")
    except Unreachable as error:
        if not error.code:
            raise
        return []  # an aggregated API server that is down: only its own group is missing
    resources = _parsed(response.body, _PlainResources).resources
    group, _, version = group_version.rpartition("/")
    return [
        Offer(
            Resource(group, version, found.name, namespaced=found.namespaced, kind=found.kind),
            frozenset(found.verbs),
            frozenset(r.name.partition("/")[2] for r in resources if r.name.startswith(f"{found.name}/")),
            found.short_names,
        )
        for found in resources
        if "/" not in found.name
    ]


def _aggregated(answer: _Aggregated) -> list[Offer]:
    return [
        Offer(
            Resource(
                group.metadata.name,
                version.version,
                found.resource,
                namespaced=found.scope == "Namespaced",
                kind=found.response_kind.kind if found.response_kind else "",
            ),
            frozenset(found.verbs),
            frozenset(sub.subresource for sub in found.subresources),
            found.short_names,
        )
        for group in answer.items
        for version in group.versions
        for found in version.resources
    ]


def _parsed(body: bytes, into: type[T]) -> T:
    try:
        return decoding.parse(body, into)
    except msgspec.DecodeError as error:
        raise Unreachable(f"cannot discover resources: the answer cannot be decoded ({error})") from None
