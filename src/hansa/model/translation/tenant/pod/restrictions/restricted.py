"""The Pod Security Standard "restricted": what it requires of pods in addition to "baseline"."""

from collections.abc import Iterator
from typing import Final

from hansa.model import keys
from hansa.model.translation.tenant.pod.restrictions.pod_spec import Container, PodSpec, Security
from hansa.model.translation.tenant.tenant_settings import PodSecurity, TenantSettings

CAPABILITIES: Final = ("NET_BIND_SERVICE",)
_NOTHING: Final = Security()


def refusals(spec: PodSpec, tenant: TenantSettings) -> Iterator[str]:
    """Messages about what has to be set, or may not be."""
    for problem in _problems(spec):
        yield (
            f"{problem} is required of tenant {tenant.name or tenant.key} by Pod Security {PodSecurity.RESTRICTED};"
            f" set it, or set annotation {keys.POD_SECURITY}={PodSecurity.BASELINE} on its VirtualCluster"
        )


def _problems(spec: PodSpec) -> Iterator[str]:
    is_windows = spec.os is not None and spec.os.name == "windows"
    of_pod = spec.security_context
    if of_pod is not None and of_pod.run_as_user == 0:
        yield "spec.securityContext.runAsUser other than 0"
    for container in spec.all_containers:
        path = f"{spec.path(container)}.securityContext"
        yield from (f"{path}.{one}" for one in _any_system(spec, container))
        if not is_windows:
            yield from (f"{path}.{one}" for one in _linux(spec, container))


def _any_system(spec: PodSpec, container: Container) -> Iterator[str]:
    of_pod, own = spec.security_context, container.security_context or _NOTHING
    inherited = bool(of_pod and of_pod.run_as_non_root) if own.run_as_non_root is None else own.run_as_non_root
    if not inherited:
        yield "runAsNonRoot: true"
    if own.run_as_user == 0:
        yield "runAsUser other than 0"


def _linux(spec: PodSpec, container: Container) -> Iterator[str]:
    of_pod, own = spec.security_context, container.security_context or _NOTHING
    if own.allow_privilege_escalation is not False:
        yield "allowPrivilegeEscalation: false"
    capabilities = own.capabilities
    if capabilities is None or "ALL" not in (capabilities.drop or ()):
        yield 'capabilities.drop: ["ALL"]'
    if capabilities is not None and not set(capabilities.add or ()) <= set(CAPABILITIES):
        yield f"capabilities.add of {', '.join(CAPABILITIES)} only"
    if own.seccomp_profile is None and (of_pod is None or of_pod.seccomp_profile is None):
        yield "seccompProfile.type: RuntimeDefault or Localhost"
