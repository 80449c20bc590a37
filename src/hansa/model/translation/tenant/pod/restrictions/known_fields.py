"""The fields of pods and containers that were judged, those of Kubernetes v1.35: others are refused until they are.

A later API server may have fields that reach further than those of today. `workloadRef` is missing, since Workloads are
not synced.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from hansa.kube.objects import Object
from hansa.model.translation.tenant.pod.restrictions.pod_spec import Violation
from hansa.model.translation.tenant.tenant_settings import Allowance

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
OF_PODS: Final = frozenset(
    {
        *("activeDeadlineSeconds", "affinity", "automountServiceAccountToken", *_LISTS, "dnsConfig", "dnsPolicy"),
        *("enableServiceLinks", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "hostname"),
        *("hostnameOverride", "imagePullSecrets", "nodeName", "nodeSelector", "os", "overhead", "preemptionPolicy"),
        *("priority", "priorityClassName", "readinessGates", "resourceClaims", "resources", "restartPolicy"),
        *("runtimeClassName", "schedulerName", "schedulingGates", "securityContext", "serviceAccount"),
        *("serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain", "tolerations"),
        *("terminationGracePeriodSeconds", "topologySpreadConstraints", "volumes"),
    }
)
OF_CONTAINERS: Final = frozenset(
    {
        *("args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "name"),
        *("ports", "readinessProbe", "resizePolicy", "resources", "restartPolicy", "restartPolicyRules"),
        *("securityContext", "startupProbe", "stdin", "stdinOnce", "targetContainerName", "terminationMessagePath"),
        *("terminationMessagePolicy", "tty", "volumeDevices", "volumeMounts", "workingDir"),
    }
)
_Fields = dict[str, msgspec.Raw]
_SPEC: Final = msgspec.json.Decoder(_Fields)
_CONTAINERS: Final = msgspec.json.Decoder(tuple[_Fields, ...] | None)
_NULL: Final = b"null"


def violations(pod: Object) -> Iterator[Violation]:
    """Fields that are not known. The spec was decoded before, so that it has the right types."""
    spec = _SPEC.decode(pod.raw("spec") or b"{}")
    yield from _unknown("spec", spec, OF_PODS)
    for field in _LISTS:
        if (listed := spec.get(field)) is None:
            continue
        for number, container in enumerate(_CONTAINERS.decode(listed) or ()):
            yield from _unknown(f"spec.{field}[{number}]", container, OF_CONTAINERS)


def _unknown(path: str, fields: Mapping[str, msgspec.Raw], known: frozenset[str]) -> Iterator[Violation]:
    for name in fields.keys() - known:
        if bytes(fields[name]) != _NULL:
            yield Violation(f"{path}.{name}", Allowance.UNKNOWN_FIELDS)
