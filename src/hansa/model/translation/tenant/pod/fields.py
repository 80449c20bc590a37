"""Fields of a pod that speak of the cluster that it is in: its node, its scheduler, its whole name."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.pod.spec import Spec
from hansa.model.translation.tenant import nodes, settings

_LONGEST_LABEL: Final = 63  # characters, of which a kubelet makes a hostname
_LONGEST_HOSTNAME: Final = 64  # that a kernel takes
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def pin_to_node(spec: Spec, _pod: Object, link: Link) -> Spec:
    """A pod that names its node is scheduled to that node, so that what the super cluster counts stays right."""
    node = spec.get("nodeName")
    if not node:
        return spec
    here = [{"key": "metadata.name", "operator": "In", "values": [nodes.name_below(node, link)]}]
    affinity = spec.get("affinity") or {}
    wanted = affinity.get("nodeAffinity") or {}
    terms = (wanted.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    pinned = {"nodeSelectorTerms": [term | {"matchFields": here} for term in terms]}
    return spec | {"affinity": affinity | {"nodeAffinity": wanted | {_REQUIRED: pinned}}}


def choose_scheduler(spec: Spec, _pod: Object, link: Link) -> Spec:
    """A scheduler of the super cluster that the tenant may name, or its default one: a tenant's own would not come."""
    if spec.get("schedulerName") in settings.of(link).schedulers:
        return spec
    return {name: value for name, value in spec.items() if name != "schedulerName"}


def name_whole(spec: Spec, pod: Object, link: Link) -> Spec:
    """A hostname that is to be the whole name: the one above, where a kubelet would put together names from below."""
    if not (spec.get("setHostnameAsFQDN") and spec.get("subdomain")) or spec.get("hostNetwork"):
        return spec
    host = spec.get("hostname") or pod.name[:_LONGEST_LABEL].rstrip("-.")
    whole = f"{host}.{spec['subdomain']}.{pod.namespace}.svc.{settings.of(link).cluster_domain}"
    rest = {name: value for name, value in spec.items() if name != "setHostnameAsFQDN"}
    return rest | {"hostnameOverride": whole} if len(whole) <= _LONGEST_HOSTNAME else rest
