"""A queue that all share below, such as the scheduler's: each upper cluster has only a few objects in it at once.

Whoever is served first there, the queue stays short, so the order in which we let objects in is the order for all.
"""

from typing import NamedTuple

from hansa.control.store import Store
from hansa.kube.resource import Resource

QUEUEING = "queueing"  # the index of a lower cache by the upper cluster whose objects wait
MOST = 64  # objects of all upper clusters together; enough that the queue is never empty while more are wanted …
LEAST = 4  # … and of each of them, however many they are


class Room(NamedTuple):
    """What an object waits for that finds the queue full; each look at one of its kind sees whether it is there."""

    cluster: str
    resource: Resource
    upper: str


def is_full(cache: Store, upper: str, *, coming: int) -> bool:
    """Whether an upper cluster has its share of the queue, with those that are on their way there."""
    share = max(LEAST, MOST // max(1, cache.spread(QUEUEING)))
    return len(cache.find(QUEUEING, upper)) + coming >= share
