"""Which labels tell nodes of a cluster apart, so that they are no part of shapes. Pure.

Clusters have labels with a value per node, such as ids of machines. In shapes, each would make a group of its own.
"""

from collections.abc import Collection

from hansa.scheduling.node import Shape


def found(shapes: Collection[Shape], known: frozenset[str], *, most_groups: int) -> frozenset[str]:
    """The known ones and those with most values, until the others make at most this many groups."""
    values = _values(shapes)
    own = set(known)
    for key in sorted(values, key=lambda key: (-len(values[key]), key)):
        if len(values[key]) == 1 or _groups(shapes, own) <= most_groups:
            break
        own.add(key)
    return frozenset(own)


def _values(shapes: Collection[Shape]) -> dict[str, set[str | None]]:
    """The values of each label; None if a shape is without it."""
    keys = {key for shape in shapes for key in shape.labels}
    return {key: {shape.labels.get(key) for shape in shapes} for key in keys}


def _groups(shapes: Collection[Shape], own: Collection[str]) -> int:
    return len({(tuple(pair for pair in one.pairs if pair[0] not in own), *_state(one)) for one in shapes})


def _state(shape: Shape) -> tuple[object, ...]:
    return (shape.taints, shape.is_ready, shape.is_cordoned)
