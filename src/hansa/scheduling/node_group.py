"""The nodes of one shape, ranked by their free amount of each resource, so that a fitting one is found without a scan.

Immutable: a change returns a new group.
"""

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hansa.scheduling.node import Node, Shape

Rank = Sequence[tuple[int, str]]  # (-free, name): the node with most free first, then by name


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that differ only in unique labels and free resources. Its lists and dicts are never modified."""

    shape: Shape
    nodes: Mapping[str, Node] = field(default_factory=dict)
    ranks: Mapping[str, Rank] = field(default_factory=dict)

    @classmethod
    def of(cls, shape: Shape, nodes: Mapping[str, Node]) -> "NodeGroup":
        """A group of these nodes, built at once."""
        ranks: dict[str, list[tuple[int, str]]] = {}
        for name, node in nodes.items():
            for resource, free in node.free.items():
                ranks.setdefault(resource, []).append((-free, name))
        return cls(shape, nodes, {resource: sorted(rank) for resource, rank in ranks.items()})

    def having(self, node: Node) -> "NodeGroup":
        """A group with this node added or replaced."""
        old = self.nodes.get(node.name)
        ranks = _reranked(self.ranks, node.name, old.free if old else {}, node.free)
        return NodeGroup(self.shape, {**self.nodes, node.name: node}, ranks)

    def without(self, name: str) -> "NodeGroup":
        """A group without this node."""
        nodes = dict(self.nodes)
        return NodeGroup(self.shape, ranks=_reranked(self.ranks, name, nodes.pop(name).free, {}), nodes=nodes)

    def fitting(self, requested: Mapping[str, int]) -> Iterator[Node]:
        """The nodes with all of this free, ordered by the free amount of the scarcest resource, most first."""
        wanted = [(resource, nano) for resource, nano in requested.items() if nano > 0]
        if not wanted:
            return iter(self.nodes.values())
        ranks = [self.ranks.get(resource, ()) for resource, _ in wanted]
        counts = [bisect.bisect_left(rank, (1 - nano,)) for rank, (_, nano) in zip(ranks, wanted, strict=True)]
        scarcest = counts.index(min(counts))
        others = wanted[:scarcest] + wanted[scarcest + 1 :]
        return self._fitting(ranks[scarcest], counts[scarcest], others)

    def _fitting(self, rank: Rank, count: int, wanted: Sequence[tuple[str, int]]) -> Iterator[Node]:
        nodes = self.nodes
        for place in range(count):
            node = nodes[rank[place][1]]
            free = node.free
            for resource, nano in wanted:  # the innermost loop of an evaluation
                if free.get(resource, 0) < nano:
                    break
            else:
                yield node

    def most_free(self, resource: str) -> tuple[int, str]:
        """The first entry of a rank: the node with most of a resource free."""
        rank = self.ranks.get(resource)
        return rank[0] if rank else (0, "")


def _reranked(
    ranks: Mapping[str, Rank], name: str, old: Mapping[str, int], new: Mapping[str, int]
) -> Mapping[str, Rank]:
    changed = dict(ranks)
    for resource in old.keys() | new.keys():
        before, after = old.get(resource), new.get(resource)
        if before == after:
            continue
        rank = list(changed.get(resource, ()))
        if before is not None:
            del rank[bisect.bisect_left(rank, (-before, name))]
        if after is not None:
            bisect.insort(rank, (-after, name))
        if rank:
            changed[resource] = rank
        else:
            del changed[resource]
    return changed
