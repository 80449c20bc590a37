"""One lower cluster, shared by all upper clusters that are linked to it: one watch per kind.

Each change goes to the one upper cluster that the stamp on the object names.
"""

import contextlib
from collections.abc import Callable, Iterator

from hansa.engine.caches import ClusterCaches
from hansa.engine.registry import Route
from hansa.engine.view.clusters import BY_UPPER
from hansa.engine.view.topics import LowerName
from hansa.engine.view.upper_view import UpperView
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.pair import Key


class SharedLower:
    """A lower cluster's caches, and the upper clusters that are linked to it, by their ids."""

    def __init__(self, side: ClusterCaches) -> None:
        self.side, self.views = side, dict[str, UpperView]()

    @property
    def name(self) -> str:
        """The name of the cluster."""
        return self.side.cluster.name

    def topics(self, resource: Resource, obj: Object) -> tuple[Key | LowerName]:
        """The topic of a change of an object: the upper object of a linked cluster, or only its own name."""
        view = self.views.get(obj.labels.get(keys.UPPER, ""))
        if view is None:
            return (LowerName(self.name, resource, obj.key),)
        return (view.clusters.topic(self.name, resource, obj),)

    @contextlib.contextmanager
    def linked(self, view: UpperView, route: Route, changed: Callable[[Key | LowerName], None]) -> Iterator[None]:
        """Link an upper cluster for as long as the caller stays inside. Its copies here are reconciled first."""
        view.attach(route, self.side)
        self.views[view.clusters.upper_id] = view
        try:
            for resource, cache in self.side.stores.items():
                for obj in cache.find(BY_UPPER, view.clusters.upper_id):
                    changed(*self.topics(resource, obj))
            yield
        finally:
            del self.views[view.clusters.upper_id]
            view.detach(self.name)
