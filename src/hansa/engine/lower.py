"""One lower cluster as all views that lead there share it: one watch for each kind, and each change goes to the one
view that the mark on the object names.
"""

import contextlib
from collections.abc import Callable, Iterator

from hansa.engine.registry import Route
from hansa.engine.side import Side
from hansa.engine.view import BY_UPPER, Spot, View
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.pair import Key


class Lower:
    """A lower cluster's caches, and the views that lead there by the ids that marks name."""

    def __init__(self, side: Side) -> None:
        self.side, self.views = side, dict[str, View]()

    @property
    def name(self) -> str:
        """The name of the cluster."""
        return self.side.cluster.name

    def topics(self, resource: Resource, obj: Object) -> tuple[Key | Spot]:
        """What an object here is about: an upper object of the view that its mark names, or only its own place."""
        view = self.views.get(obj.labels.get(keys.UPPER, ""))
        return (Spot(self.name, resource, obj.key),) if view is None else view.topics(self.name, resource, obj)

    @contextlib.contextmanager
    def led_to(self, view: View, route: Route, changed: Callable[[Key | Spot], None]) -> Iterator[None]:
        """A view leads here, while the caller stays inside. What is here of its upper cluster is looked at first."""
        view.attach(route, self.side)
        self.views[view.upper_id] = view
        try:
            for resource, cache in self.side.stores.items():
                for obj in cache.find(BY_UPPER, view.upper_id):
                    changed(*self.topics(resource, obj))
            yield
        finally:
            del self.views[view.upper_id]
            view.detach(self.name)
