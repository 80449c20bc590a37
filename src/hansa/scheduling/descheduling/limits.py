"""How many pods were evicted in this round, in all and of each node and namespace. Pure: the time is given."""

import math
from collections import Counter

from hansa.scheduling.descheduling.choosing import Move
from hansa.scheduling.descheduling.policy import Policy


class Round:
    """The evictions of one round, after which it counts anew."""

    def __init__(self, policy: Policy, seconds: float) -> None:
        self._policy, self._seconds = policy, seconds
        self._end = -math.inf
        self._counts: Counter[tuple[str, str]] = Counter()

    def wait(self, move: Move, now: float) -> float:
        """The seconds until a pod may be evicted; 0 if it may be now."""
        if now >= self._end:
            self._counts.clear()
            return 0.0
        return self._end - now if any(most and self._counts[key] >= most for key, most in self._limits(move)) else 0.0

    def count(self, move: Move, now: float) -> None:
        """Count an eviction."""
        if now >= self._end:
            self._end = now + self._seconds
        self._counts.update(key for key, _ in self._limits(move))

    def give_back(self, move: Move) -> None:
        """Do not count an eviction that was refused."""
        self._counts.subtract(key for key, _ in self._limits(move))

    def _limits(self, move: Move) -> list[tuple[tuple[str, str], int]]:
        policy = self._policy
        return [
            (("all", ""), policy.most),
            (("node", move.refused_by), policy.most_per_node),
            (("namespace", move.pod.namespace), policy.most_per_namespace),
        ]
