"""What steps find along a link in tests: objects given by hand, by the place that they have above."""

from collections.abc import Iterable

from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource


class Surroundings:
    """Upper objects, and what there is of them below, also by their upper places."""

    def __init__(self, above: Iterable[Object] = (), below: Iterable[Object] = ()) -> None:
        self.above = {(obj.kind, obj.key): obj for obj in above}
        self.below = {(obj.kind, obj.key): obj for obj in below}

    def upper(self, resource: Resource, place: Place) -> Object | None:
        return self.above.get((resource.kind, place))

    def lower(self, resource: Resource, place: Place) -> Object | None:
        return self.below.get((resource.kind, place))

    def uppers(self, resource: Resource, namespace: str) -> Iterable[Object]:
        return [
            obj for (kind, place), obj in self.above.items() if (kind, place.namespace) == (resource.kind, namespace)
        ]
