"""A resource of the API: group, version, plural and scope, and the URL paths of its objects, built-in or custom."""

from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One collection of an API group; two are equal when their paths are."""

    group: str
    version: str
    plural: str
    namespaced: bool = field(default=True, kw_only=True)
    kind: str = field(default="", kw_only=True, compare=False)

    def __hash__(self) -> int:
        return hash(self.plural)  # keys of queues and caches hold a resource; the generated hash reads all fields

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """The value of an object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of the group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def collection(self, namespace: str = "") -> str:
        """The path of all objects, or of those in one namespace."""
        if not namespace:
            return f"{self.root}/{self.plural}"
        if not self.namespaced:
            raise ValueError(f"{self} is cluster-scoped, but namespace {namespace} was given")
        return f"{self.root}/namespaces/{_segment(namespace)}/{self.plural}"

    def path(self, name: str, *, namespace: str = "", subresource: str = "") -> str:
        """The path of one object, or of a subresource of it."""
        if not name:
            raise ValueError(f"{self}: the name is empty")
        if self.namespaced and not namespace:
            raise ValueError(f"{self} is namespaced, but no namespace was given for {name}")
        path = f"{self.collection(namespace)}/{_segment(name)}"
        return f"{path}/{subresource}" if subresource else path


def _segment(name: str) -> str:
    # A name with a slash or ".." would address another object.
    if name in (".", "..") or "/" in name:
        raise ValueError(f"{name!r} is not a valid path segment")
    return quote(name, safe="")
