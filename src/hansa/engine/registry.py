"""The registry of clusters and of the routes between them. Both change at run time, and listeners are notified.

It holds the desired links; watching, deciding and writing along them is left to the syncer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from hansa.engine.cluster import Cluster
from hansa.runtime import errors, listeners


@dataclass(frozen=True, slots=True)
class Route:
    """A desired link: objects of the upper cluster may be placed in the lower one.

    `nodes` are the virtual nodes of the upper cluster that represent the lower one. While keys wait, twice as many keys
    are reconciled for a route of weight 2 as for one of weight 1. With `is_self`, both are the same cluster under two
    names: its copies are not upper objects.
    """

    upper: str
    lower: str
    settings: Any = None
    nodes: frozenset[str] = frozenset()
    weight: float = 1.0
    is_self: bool = False

    def __str__(self) -> str:
        return f"{self.upper} to {self.lower}"


class Routes(Protocol):
    """The interface of a registry that the syncer follows."""

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """All clusters by name."""

    def uppers(self) -> list[str]:
        """The clusters that are the upper end of a route."""

    def routes(self, upper: str) -> list[Route]:
        """The routes from one upper cluster."""

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` after every change. The returned function removes it."""


class ClusterRegistry:
    """The clusters by name, and the routes between them."""

    def __init__(self) -> None:
        self._clusters: dict[str, Cluster] = {}
        self._routes: dict[str, dict[str, Route]] = {}  # by upper and lower cluster
        self._followed: set[str] = set()
        self._listeners: listeners.Listeners[Callable[[], None]] = listeners.Listeners()

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """All clusters by name."""
        return MappingProxyType(self._clusters)

    def join(self, cluster: Cluster) -> None:
        """Add a cluster."""
        if cluster.name in self._clusters:
            raise errors.HansaError(f"cluster {cluster.name} exists already; rename one of them")
        self._clusters[cluster.name] = cluster
        self._notify()

    async def leave(self, name: str) -> None:
        """Remove a cluster and its routes. Objects in it stay."""
        self._routes.pop(name, None)
        self._followed.discard(name)
        for upper in tuple(self._routes):
            self._drop(upper, name)
        cluster = self._clusters.pop(name, None)
        self._notify()
        if cluster is not None:
            await cluster.close()

    def link(self, route: Route) -> None:
        """Add a route; one between the same two clusters is replaced."""
        for name in (route.upper, route.lower):
            if name not in self._clusters:
                raise errors.HansaError(f"cannot link {route}: cluster {name} does not exist")
        self._routes.setdefault(route.upper, {})[route.lower] = route
        self._notify()

    def follow(self, upper: str) -> None:
        """Follow an upper cluster also without a route: its objects may have finalizers that have to be removed."""
        self._followed.add(upper)
        self._notify()

    def unlink(self, upper: str, lower: str) -> None:
        """Remove a route. Copies in the lower cluster stay."""
        if self._drop(upper, lower):
            self._notify()

    def uppers(self) -> list[str]:
        """The clusters that are the upper end of a route, and those that are followed without one."""
        return list(dict.fromkeys((*self._routes, *sorted(self._followed))))

    def routes(self, upper: str) -> list[Route]:
        """The routes from one upper cluster."""
        return list(self._routes.get(upper, {}).values())

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` after every change. The returned function removes it."""
        return self._listeners.add(notify)

    def reversed_routes(self) -> Routes:
        """The same routes with the roles swapped: for objects whose original is in the lower cluster."""
        return _ReversedRoutes(self)

    def all_routes(self) -> list[Route]:
        """The routes from all upper clusters."""
        return [route for routes in self._routes.values() for route in routes.values()]

    def _drop(self, upper: str, lower: str) -> bool:
        routes = self._routes.get(upper, {})
        is_dropped = routes.pop(lower, None) is not None
        if upper in self._routes and not routes:
            del self._routes[upper]
        return is_dropped

    def _notify(self) -> None:
        for notify in self._listeners:
            notify()


@dataclass(frozen=True, slots=True)
class _ReversedRoutes:
    registry: ClusterRegistry

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        return self.registry.clusters

    def uppers(self) -> list[str]:
        return list(dict.fromkeys(route.lower for route in self.registry.all_routes()))

    def routes(self, upper: str) -> list[Route]:
        routes = self.registry.all_routes()
        return [
            Route(route.lower, route.upper, route.settings, weight=route.weight, is_self=route.is_self)
            for route in routes
            if route.lower == upper
        ]

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        return self.registry.listen(notify)
