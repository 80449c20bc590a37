"""The settings of the multi-scheduler, and the kube-scheduler configuration that uses it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.common.link_settings import LinkSettings
from hansa.model.translation.tensile.pod import constraints
from hansa.scheduling import pod_request
from hansa.scheduling.pod_request import PodRequest

SCHEDULER = "default-scheduler"
PORT = 10262  # of the extender
CALL_SECONDS = 10  # kube-scheduler's deadline for a call of the extender; a binding may take as long as a request


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiSchedulerSettings:
    """One upper cluster, and the credentials of its lower ones by the label `clusterID` of their virtual nodes.

    Nodes without this label are known by the name of their cluster in the configuration of `hansa virtual-node`.
    """

    upper: CredentialSource = field(default_factory=CredentialSource)
    lowers: Mapping[str, CredentialSource]
    host: str = "127.0.0.1"
    port: int = PORT
    metrics_address: str = ""
    election_namespace: str = ""  # of the Lease of kube-scheduler; empty: no leader election


def lower_of(node: Object) -> str:
    """The lower cluster of a node, as in the configuration; empty for an ordinary one."""
    return node.labels.get(keys.CLUSTER_ID) or node.annotations.get(keys.NODE_LOWER, "")


def request_of(pod: Object, node: Object) -> PodRequest:
    """The request of a pod's copy in the cluster of a virtual node: with the constraints that apply there."""
    taint = node.annotations.get(keys.NODE_TAINT) or keys.PROVIDER_TAINT
    settings = LinkSettings(node=node.name, node_labels=node.labels, taint=taint)
    link = Link("", "", lower_of(node), settings=settings)
    return pod_request.of_pod(pod.with_fields(spec=constraints.restore_constraints(pod.spec, pod, link)))


def scheduler_configuration(settings: MultiSchedulerSettings, *, is_ignorable: bool, name: str = SCHEDULER) -> str:
    """The configuration of a stock kube-scheduler that calls the extender, as YAML."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    extender = {
        "urlPrefix": f"http://{host}:{settings.port}",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "bindVerb": "bind",
        "weight": 1,
        "nodeCacheCapable": True,
        "ignorable": is_ignorable,
        "httpTimeout": f"{CALL_SECONDS}s",
    }
    configuration: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    if settings.upper.kubeconfig is not None:
        configuration["clientConnection"] = {"kubeconfig": str(settings.upper.kubeconfig)}
    if settings.election_namespace:
        election = {"leaderElect": True, "resourceNamespace": settings.election_namespace}
        configuration["leaderElection"] = election | ({"resourceName": name} if name != SCHEDULER else {})
    profiles = [{"schedulerName": name}, {"schedulerName": "volumes-below", "plugins": _VOLUMES_BELOW}]
    return yaml.safe_dump(configuration | {"profiles": profiles, "extenders": [extender]}, sort_keys=False)


# For pods whose volumes are provisioned below: kube-scheduler must not wait for a volume before it binds the pod.
_VOLUMES_BELOW = {"multiPoint": {"disabled": [{"name": "VolumeBinding"}]}} | {
    point: {"enabled": [{"name": "VolumeBinding"}]} for point in ("preFilter", "filter", "reserve")
}
