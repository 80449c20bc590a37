"""Whether NetworkPolicies are enforced, as far as the API shows: by the network plugins that are known."""

import re
from collections.abc import Iterable
from typing import Final

from hansa.app.doctor import finding
from hansa.app.doctor.finding import Finding
from hansa.app.status import workloads
from hansa.app.status.reading import Reader
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import stamp

CHECK: Final = "network policy"
# Names or images of DaemonSets; the longest names first, since "canal" runs the image of calico beside flannel.
ENFORCES: Final = {
    "aws-network-policy-agent": "the network policy agent of Amazon's VPC CNI",
    "aws-eks-nodeagent": "the network policy agent of Amazon's VPC CNI",
    "azure-npm": "Azure Network Policy Manager",
    "kube-network-policies": "kube-network-policies",
    "kube-router": "kube-router",
    "ovnkube-node": "OVN-Kubernetes",
    "calico": "Calico",
    "cilium": "Cilium",
    "anetd": "Dataplane V2",
    "antrea": "Antrea",
    "weave-net": "Weave Net",
    "kindnet": "kindnet (from version 0.24 of kind on)",
}
DOES_NOT: Final = {"flannel": "Flannel", "aws-node": "Amazon's VPC CNI without its network policy agent"}
WHY: Final = "without enforcement, pods of tenants reach each other and the control planes of others"
HOW: Final = (
    "install a plugin that enforces NetworkPolicies, such as Calico or Cilium, or check by hand: a pod in a namespace"
    " with a NetworkPolicy that denies all ingress must not answer to a pod of another namespace (docs/security.md)"
)


async def examine(reader: Reader) -> list[Finding]:
    """The findings; none for a cluster where no tenant's pods run."""
    if not (await reader.list(resources.NAMESPACES, labels=stamp.selector())).items:
        return []
    return [judged((await reader.list(resources.DAEMON_SETS)).items)]


def judged(daemon_sets: Iterable[Object]) -> Finding:
    """What the DaemonSets of a cluster say."""
    words = [word for one in daemon_sets for word in _words(one)]
    for part, plugin in ENFORCES.items():
        if any(re.search(rf"\b{part}", word) for word in words):
            return finding.fine(CHECK, f"{plugin} enforces NetworkPolicies")
    for part, plugin in DOES_NOT.items():
        if any(part in word for word in words):
            return finding.problem(CHECK, f"{plugin} does not enforce NetworkPolicies", why=WHY, remedy=HOW)
    what = "no DaemonSet is that of a known network plugin: the API does not show whether policies are enforced"
    return finding.unknown(CHECK, what, why=WHY, remedy=HOW)


def _words(daemon_set: Object) -> Iterable[str]:
    yield daemon_set.name
    for one in workloads.containers(daemon_set):
        yield str(one.get("image", "")).rpartition("/")[2]
