"""What is known of each target for binding proxy pods: its nodes by shape, or why nothing can be placed there.

The target controller updates the views; the binder reads them and is notified of changes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from hansa.model.translation.federation.target_link import TargetLink
from hansa.runtime import listeners
from hansa.scheduling.cluster_view import ClusterView


@dataclass(frozen=True, slots=True)
class TargetView:
    """One target at one moment. Immutable.

    `scheduling` has one entry per real node, with what is free on it; its names are made up and it has no pods. It is
    closed with `problem` as the reason while nothing may be placed in the target. It is built anew for every version of
    the summary, so that reservations have to be made again by the reader.
    """

    link: TargetLink
    scheduling: ClusterView = field(compare=False)  # follows from the version and the problem
    problem: str = ""  # why nothing can be placed there: unreachable, not summarized yet, leaving
    version: str = ""  # the resourceVersion of the ClusterSummary; "" if it was not read yet

    @property
    def node(self) -> str:
        """The name of the virtual node."""
        return self.link.node

    @property
    def is_usable(self) -> bool:
        """Whether pods can be placed there now."""
        return not self.problem


Notify = Callable[[str], None]  # with the name of the virtual node whose view changed


class TargetViews(Mapping[str, TargetView]):
    """The views of all targets by the name of the virtual node."""

    def __init__(self) -> None:
        self._views: dict[str, TargetView] = {}
        self._listeners: listeners.Listeners[Notify] = listeners.Listeners()

    def __getitem__(self, node: str) -> TargetView:
        return self._views[node]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._views))

    def __len__(self) -> int:
        return len(self._views)

    def listen(self, notify: Notify) -> Callable[[], None]:
        """Call `notify` after every change. The returned function removes it."""
        return self._listeners.add(notify)

    def update(self, view: TargetView) -> None:
        """Add or replace a view."""
        if self._views.get(view.node) != view:
            self._views[view.node] = view
            self._notify(view.node)

    def remove(self, node: str) -> None:
        """Remove the view of a target that is gone."""
        if self._views.pop(node, None) is not None:
            self._notify(node)

    def _notify(self, node: str) -> None:
        for notify in self._listeners:
            notify(node)
