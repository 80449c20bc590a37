"""Real Kubernetes clusters on this machine, as plain processes, for development and tests.

async with local.cluster("a", nodes=3) as a:
    async with a.client() as client: ...
"""

from hansa.local.cluster import Cluster
from hansa.local.fleet import Fleet, cluster
from hansa.local.spec import ClusterSpec, NodeShape
from hansa.local.state import State, open_state
from hansa.programs import binaries

__all__ = ["Cluster", "ClusterSpec", "Fleet", "NodeShape", "State", "binaries", "cluster", "open_state"]
