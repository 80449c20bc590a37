"""Which clusters take part and how they are linked: both change at run time, and whoever cares is told.

It holds what is wanted; watching, deciding and writing along the links is the syncer's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from hansa.engine.cluster import Cluster
from hansa.runtime import errors, listeners


@dataclass(frozen=True, slots=True)
class Route:
    """A link that is wanted: objects of the upper cluster may be in the lower one.

    `nodes` are the virtual nodes of the upper cluster that stand for the lower one. Of keys that wait, a route of
    weight 2 has twice as many looked at as one of weight 1.
    """

    upper: str
    lower: str
    settings: Any = None
    nodes: frozenset[str] = frozenset()
    weight: float = 1.0

    def __str__(self) -> str:
        return f"{self.upper} to {self.lower}"


class Routes(Protocol):
    """What of a registry is followed."""

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """All that take part."""

    def uppers(self) -> list[str]:
        """The clusters from which routes begin."""

    def routes(self, upper: str) -> list[Route]:
        """The routes from one upper cluster."""

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Tell `notify` after every change. The answer ends it."""


class Registry:
    """The clusters by name, and the routes between them."""

    def __init__(self) -> None:
        self._clusters: dict[str, Cluster] = {}
        self._routes: dict[str, dict[str, Route]] = {}  # by upper and lower cluster
        self._listeners: listeners.Listeners[Callable[[], None]] = listeners.Listeners()

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """All that take part."""
        return MappingProxyType(self._clusters)

    def join(self, cluster: Cluster) -> None:
        """A cluster takes part from now on."""
        if cluster.name in self._clusters:
            raise errors.HansaError(f"there is a cluster {cluster.name} already: give one of them another name")
        self._clusters[cluster.name] = cluster
        self._tell()

    async def leave(self, name: str) -> None:
        """A cluster takes part no longer, nor do its routes. What we made there stays."""
        self._routes.pop(name, None)
        for upper in tuple(self._routes):
            self._drop(upper, name)
        cluster = self._clusters.pop(name, None)
        self._tell()
        if cluster is not None:
            await cluster.close()

    def link(self, route: Route) -> None:
        """Let objects travel along a route; the same two clusters again replace its settings."""
        for name in (route.upper, route.lower):
            if name not in self._clusters:
                raise errors.HansaError(f"cannot link {route}: there is no cluster {name}")
        self._routes.setdefault(route.upper, {})[route.lower] = route
        self._tell()

    def unlink(self, upper: str, lower: str) -> None:
        """End a route. What travelled stays where it is."""
        if self._drop(upper, lower):
            self._tell()

    def uppers(self) -> list[str]:
        """The clusters from which routes begin."""
        return list(self._routes)

    def routes(self, upper: str) -> list[Route]:
        """The routes from one upper cluster."""
        return list(self._routes.get(upper, {}).values())

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Tell `notify` after every change. The answer ends it."""
        return self._listeners.add(notify)

    def turned(self) -> Routes:
        """The same with the roles turned round: for what has its original below and its copy above."""
        return _Turned(self)

    def all_routes(self) -> list[Route]:
        """The routes from all upper clusters."""
        return [route for routes in self._routes.values() for route in routes.values()]

    def _drop(self, upper: str, lower: str) -> bool:
        routes = self._routes.get(upper, {})
        is_dropped = routes.pop(lower, None) is not None
        if upper in self._routes and not routes:
            del self._routes[upper]
        return is_dropped

    def _tell(self) -> None:
        for notify in self._listeners:
            notify()


@dataclass(frozen=True, slots=True)
class _Turned:
    registry: Registry

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        return self.registry.clusters

    def uppers(self) -> list[str]:
        return list(dict.fromkeys(route.lower for route in self.registry.all_routes()))

    def routes(self, upper: str) -> list[Route]:
        routes = self.registry.all_routes()
        return [
            Route(route.lower, route.upper, route.settings, weight=route.weight)
            for route in routes
            if route.lower == upper
        ]

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        return self.registry.listen(notify)
