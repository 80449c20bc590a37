"""Pod fields that depend on the cluster: nodeName, schedulerName and setHostnameAsFQDN."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.common.pod.spec import Spec
from hansa.model.translation.tenant import nodes, tenant_settings

_MAX_LABEL: Final = 63  # characters of a DNS label; kubelets cut a hostname to it
_MAX_HOSTNAME: Final = 64  # characters, the limit of Linux
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def pin_to_node(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Replace nodeName by node affinity, so that the super cluster's scheduler checks and counts the pod."""
    node = spec.get("nodeName")
    if not node:
        return spec
    here = [{"key": "metadata.name", "operator": "In", "values": [nodes.super_node_name(node, link)]}]
    affinity = spec.get("affinity") or {}
    wanted = affinity.get("nodeAffinity") or {}
    terms = (wanted.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    pinned = {"nodeSelectorTerms": [term | {"matchFields": here} for term in terms]}
    return spec | {"affinity": affinity | {"nodeAffinity": wanted | {_REQUIRED: pinned}}}


def choose_scheduler(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Keep schedulerName if the tenant may use that scheduler of the super cluster; otherwise use the default one."""
    if spec.get("schedulerName") in tenant_settings.of(link).schedulers:
        return spec
    return {name: value for name, value in spec.items() if name != "schedulerName"}


def set_fqdn_hostname(spec: Spec, pod: Object, link: Link) -> Spec:
    """Replace setHostnameAsFQDN by hostnameOverride: the kubelet would build the FQDN from the super namespace."""
    if not (spec.get("setHostnameAsFQDN") and spec.get("subdomain")) or spec.get("hostNetwork"):
        return spec
    host = spec.get("hostname") or pod.name[:_MAX_LABEL].rstrip("-.")
    fqdn = f"{host}.{spec['subdomain']}.{pod.namespace}.svc.{tenant_settings.of(link).cluster_domain}"
    rest = {name: value for name, value in spec.items() if name != "setHostnameAsFQDN"}
    return rest | {"hostnameOverride": fqdn} if len(fqdn) <= _MAX_HOSTNAME else rest
