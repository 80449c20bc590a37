"""The right that a request needs, as with a kubelet: a verb, and subresources of the node, one of which suffices."""

from dataclasses import dataclass

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# By the first part of the path; those with "proxy" are parts of that right that can be given alone.
_SUBRESOURCES = {
    "pods": ("pods", "proxy"),
    "runningpods": ("pods", "proxy"),
    "healthz": ("healthz", "proxy"),
    "configz": ("configz", "proxy"),
    "flagz": ("configz",),
    "stats": ("stats",),
    "metrics": ("metrics",),
    "logs": ("log",),
    "checkpoint": ("checkpoint",),
    "statusz": ("statusz",),
}
_WRITES = frozenset({"exec", "attach", "portForward", "run"})


@dataclass(frozen=True, slots=True)
class Right:
    """A verb, and subresources of nodes in the order in which they are tried."""

    verb: str
    subresources: tuple[str, ...] = ("proxy",)


def of(method: str, target: str) -> Right:
    """The right that a request line needs, whether or not such a request is served.

    Commands need the right to create also if they are a GET, as with WebSocket: a right to read must not be enough.
    """
    first = target.partition("?")[0].removeprefix("/").partition("/")[0]
    verb = "create" if first in _WRITES else _VERBS.get(method, "create")
    return Right(verb, _SUBRESOURCES.get(first, ("proxy",)))
