"""Keys waiting in lanes, one lane for each group, served by start-time fair queueing: by weight, in O(log groups).

A lane that was idle comes first for a few keys, and none takes all workers: a newcomer never waits for a backlog.
"""

import collections
import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
LEAST = 1  # keys of a backlog in work at once, however many backlogs there are


class Lane(Generic[K]):
    """A group's waiting keys, and its place in virtual time: where its next key starts."""

    __slots__ = ("busy", "group", "in_line", "keys", "server", "start", "weight")

    def __init__(self, group: Hashable, start: float, weight: float, server: Hashable) -> None:
        self.group, self.weight, self.server = group, weight, server
        self.keys: collections.deque[K] = collections.deque()
        self.start = start
        self.busy = 0
        self.in_line = False


class Lanes(Generic[K]):
    """All lanes: at most `width` keys of a lane in work at once, `credit` keys of an idle lane before the others'.

    `server` is what the keys of a group are waited for; backlogs for the same one share half a width.
    """

    def __init__(
        self,
        group: Callable[[K], Hashable],
        weight: Callable[[Hashable], float],
        *,
        server: Callable[[Hashable], Hashable] = lambda _: "",
        width: int,
        credit: float,
    ) -> None:
        self._group, self._weight, self._server, self._width, self._credit = group, weight, server, width, credit
        self._lanes: dict[Hashable, Lane[K]] = {}
        self._working: dict[K, Lane[K]] = {}  # where a key came from: its group may be another one meanwhile
        self._line: list[tuple[float, int, Lane[K]]] = []
        # How many lanes whose keys wait have which weight, for each server.
        self._weights: dict[Hashable, collections.Counter[float]] = collections.defaultdict(collections.Counter)
        self._sequence = itertools.count()
        self._now = 0.0
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    @property
    def is_ready(self) -> bool:
        """Whether `pop` has a key."""
        return bool(self._line)

    def depths(self) -> dict[Hashable, int]:
        """How many keys wait in each lane."""
        return {group: len(lane.keys) for group, lane in self._lanes.items() if lane.keys}

    def push(self, key: K) -> None:
        """Put a key at the end of its lane."""
        group = self._group(key)
        lane = self._lanes.get(group)
        if lane is None:
            start = self._now - self._credit
            lane = self._lanes[group] = Lane(group, start, self._weight(group), self._server(group))
        if not lane.keys:
            self._weights[lane.server][lane.weight] += 1
        lane.keys.append(key)
        self._waiting += 1
        self._line_up(lane)

    def pop(self) -> K:
        """Take the key that is next in fairness; its lane counts it as busy until `release`."""
        start, _, lane = heapq.heappop(self._line)
        lane.in_line = False
        key = lane.keys.popleft()
        self._now = max(self._now, start)
        self._weigh(lane)
        lane.start = start + 1 / lane.weight
        lane.busy += 1
        self._working[key] = lane
        self._waiting -= 1
        self._line_up(lane)
        return key

    def release(self, key: K) -> None:
        """The key is no longer in work."""
        lane = self._working.pop(key)
        lane.busy -= 1
        self._line_up(lane)
        if not self._working and not self._waiting:
            # A new busy period owes nothing to the last one; and lanes of groups that are gone don't stay.
            self._lanes.clear()
            self._weights.clear()
            self._now = 0.0

    def _line_up(self, lane: Lane[K]) -> None:
        if lane.in_line or not lane.keys:
            return
        lane.start = max(lane.start, self._now - self._credit)
        if lane.busy >= self._room(lane):
            return
        lane.in_line = True
        heapq.heappush(self._line, (lane.start, next(self._sequence), lane))

    def _room(self, lane: Lane[K]) -> int:
        """How many keys of a lane may be in work at once."""
        if lane.start < self._now:
            return self._width
        # Backlogs, which have used up their credit, share half of it: the other half is for who comes next. If each had
        # that much in work they would stand in line at their server, and whoever comes next behind all of them.
        weights = sum(weight * count for weight, count in self._weights[lane.server].items())
        return max(LEAST, int(self._width // 2 * lane.weight / weights))

    def _weigh(self, lane: Lane[K]) -> None:
        """One of its keys was taken: it may be the last that waited, and the weight another one now."""
        weights = self._weights[lane.server]
        weights[lane.weight] -= 1
        if not weights[lane.weight]:
            del weights[lane.weight]
        lane.weight = self._weight(lane.group)
        if lane.keys:
            weights[lane.weight] += 1
