"""Which labels tell nodes of a cluster apart, so that they are no part of shapes. Pure.

Clusters have labels with a value per node, such as ids of machines. In shapes, each would make a group of its own.
"""

import bisect
from collections import Counter, defaultdict
from collections.abc import Collection

from hansa.scheduling.node import Shape


def found(shapes: Collection[Shape], known: frozenset[str], *, most_groups: int) -> frozenset[str]:
    """The known ones and those with most values, until the others make at most this many groups."""
    values = {key: found for key, found in _values(shapes).items() if len(found) > 1}
    ordered = sorted(values, key=lambda key: (-len(values[key]), key))
    # More labels never make more groups. Another cluster may report thousands of both.
    count = bisect.bisect_left(
        range(len(ordered)), -most_groups, key=lambda count: -_groups(shapes, known.union(ordered[:count]))
    )
    return known.union(ordered[:count])


def _values(shapes: Collection[Shape]) -> dict[str, set[str | None]]:
    """The values of each label; None if a shape is without it."""
    values: defaultdict[str, set[str | None]] = defaultdict(set)
    holders: Counter[str] = Counter()
    for shape in shapes:
        holders.update(shape.labels.keys())
        for key, value in shape.labels.items():
            values[key].add(value)
    return {key: found if holders[key] == len(shapes) else found | {None} for key, found in values.items()}


def _groups(shapes: Collection[Shape], own: Collection[str]) -> int:
    return len({(tuple(pair for pair in one.pairs if pair[0] not in own), *_state(one)) for one in shapes})


def _state(shape: Shape) -> tuple[object, ...]:
    return (shape.taints, shape.is_ready, shape.is_cordoned)
