"""The settings of a link from a source cluster to a target cluster.

The target controller creates them from Targets and ClusterTargets; translations and placements of the mode read them.
"""

from dataclasses import dataclass

from hansa.model.pair import Link


@dataclass(frozen=True, slots=True)
class TargetLink:
    """The settings of one link. With a namespace it is a Target's, and only objects in it are placed there.

    With `is_self` the target cluster is the source cluster. While `is_leaving`, nothing is placed there any more and
    existing copies are deleted: the Target is being removed.
    """

    target: str  # the name of the Target or ClusterTarget
    node: str  # the virtual node; also the name of the target cluster in the registry
    namespace: str = ""  # of the Target; "" for a ClusterTarget
    source: str = ""  # the configured name of the source cluster; may be empty
    source_id: str = ""  # the id of the source cluster
    is_self: bool = False
    is_leaving: bool = False

    def __str__(self) -> str:
        return f"Target {self.namespace}/{self.target}" if self.namespace else f"ClusterTarget {self.target}"

    def takes(self, namespace: str) -> bool:
        """Whether objects of this namespace may be placed there."""
        return self.namespace in ("", namespace)


def of(link: Link) -> TargetLink:
    """The settings of a link."""
    return link.settings_as(TargetLink)
