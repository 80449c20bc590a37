"""Waiting keys in lanes, one per group, served by weighted start-time fair queueing in O(log groups).

The first few keys of an idle lane go first, and no lane gets all workers: keys of a new group never wait for a backlog.
"""

import collections
import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
LEAST = 1  # keys of a lane in progress at once, however many backlogs there are and however slow it is
REMEMBERED = 1024  # narrow lanes whose width outlives them: a stalled server is still stalled when its next key comes


class Lane(Generic[K]):
    """The waiting keys of a group, and the virtual time at which its next key starts."""

    __slots__ = ("busy", "group", "is_queued", "keys", "server", "start", "weight")

    def __init__(self, group: Hashable, start: float, weight: float, server: Hashable) -> None:
        self.group, self.weight, self.server = group, weight, server
        self.keys: collections.deque[K] = collections.deque()
        self.start = start
        self.busy = 0
        self.is_queued = False


class Lanes(Generic[K]):
    """All lanes: at most `width` keys of a lane in progress at once, `credit` keys of an idle lane before others.

    `server` maps a group to the API server that its reconciles write to; backlogs of one server share half a width.
    A lane whose keys are slow narrows, down to one key at once, and widens again with each key that is quick.
    """

    def __init__(
        self,
        weight: Callable[[Hashable], float],
        *,
        server: Callable[[Hashable], Hashable] = lambda _: "",
        width: int,
        credit: float,
    ) -> None:
        self._weight, self._server, self._width, self._credit = weight, server, width, credit
        self._lanes: dict[Hashable, Lane[K]] = {}
        self._working: dict[K, Lane[K]] = {}  # the lane that a key was taken from: its group may change meanwhile
        self._slow: set[K] = set()  # of these: those that narrowed their lane
        self._widths: collections.OrderedDict[Hashable, int] = collections.OrderedDict()  # of narrow lanes
        self._heap: list[tuple[float, int, Lane[K]]] = []
        # By server and weight, the number of lanes with waiting keys.
        self._weights: dict[Hashable, collections.Counter[float]] = collections.defaultdict(collections.Counter)
        self._sequence = itertools.count()
        self._now = 0.0
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    @property
    def is_ready(self) -> bool:
        """Whether `pop` has a key."""
        return bool(self._heap)

    def depths(self) -> dict[Hashable, int]:
        """The number of waiting keys of each group."""
        return {group: len(lane.keys) for group, lane in self._lanes.items() if lane.keys}

    def push(self, key: K, group: Hashable) -> None:
        """Put a key at the end of the lane of its group."""
        lane = self._lanes.get(group)
        if lane is None:
            start = self._now - self._credit
            lane = self._lanes[group] = Lane(group, start, self._weight(group), self._server(group))
        if not lane.keys:
            self._weights[lane.server][lane.weight] += 1
        lane.keys.append(key)
        self._waiting += 1
        self._enqueue(lane)

    def pop(self) -> K:
        """Take the next key; its lane counts it as in progress until `release`."""
        start, _, lane = heapq.heappop(self._heap)
        lane.is_queued = False
        key = lane.keys.popleft()
        self._now = max(self._now, start)
        self._update_weights(lane)
        lane.start = start + 1 / lane.weight
        lane.busy += 1
        self._working[key] = lane
        self._waiting -= 1
        self._enqueue(lane)
        return key

    def narrow(self, key: K) -> None:
        """A key in progress is slow: its lane gets half the width."""
        if key in self._slow:
            return
        self._slow.add(key)
        group = self._working[key].group
        self._widths[group] = max(LEAST, self._widths.pop(group, self._width) // 2)
        if len(self._widths) > REMEMBERED:
            self._widths.popitem(last=False)

    def release(self, key: K) -> None:
        """The key is no longer in progress."""
        lane = self._working.pop(key)
        lane.busy -= 1
        if key in self._slow:
            self._slow.discard(key)
        elif lane.group in self._widths:
            self._widen(lane.group)
        self._enqueue(lane)
        if not self._working and not self._waiting:
            # A new busy period starts without debts, and lanes of groups that are gone are dropped.
            self._lanes.clear()
            self._weights.clear()
            self._now = 0.0

    def _enqueue(self, lane: Lane[K]) -> None:
        if lane.is_queued or not lane.keys:
            return
        lane.start = max(lane.start, self._now - self._credit)
        if lane.busy >= self._limit(lane):
            return
        lane.is_queued = True
        heapq.heappush(self._heap, (lane.start, next(self._sequence), lane))

    def _limit(self, lane: Lane[K]) -> int:
        """How many keys of a lane may be in progress at once."""
        width = self._widths.get(lane.group, self._width)
        if lane.start < self._now:
            return width
        # Backlogs have used up their credit and share half of the width; the other half is for groups that become busy
        # next. Otherwise the requests of backlogs would queue up at the API server, in front of those of other groups.
        weights = sum(weight * count for weight, count in self._weights[lane.server].items())
        return max(LEAST, min(width, int(self._width // 2 * lane.weight / weights)))

    def _widen(self, group: Hashable) -> None:
        self._widths[group] *= 2
        if self._widths[group] >= self._width:
            del self._widths[group]

    def _update_weights(self, lane: Lane[K]) -> None:
        """Update the weights after a key was taken: the lane may be empty now, and its weight may have changed."""
        weights = self._weights[lane.server]
        weights[lane.weight] -= 1
        if not weights[lane.weight]:
            del weights[lane.weight]
        lane.weight = self._weight(lane.group)
        if lane.keys:
            weights[lane.weight] += 1
