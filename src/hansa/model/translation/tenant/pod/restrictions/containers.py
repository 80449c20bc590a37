"""Restrictions on rights of containers by which one can take over its node."""

from collections.abc import Iterator
from typing import Final

from hansa.model.translation.tenant.pod.restrictions.pod_spec import PodSpec, Security, Violation, Windows
from hansa.model.translation.tenant.tenant_settings import Allowance

CAPABILITIES: Final = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
PROC_MOUNTS: Final = frozenset({"", "Default"})


def violations(spec: PodSpec) -> Iterator[Violation]:
    """Fields that give a container more rights than any container has."""
    if spec.security_context and _is_host_process(spec.security_context.windows_options):
        yield Violation("spec.securityContext.windowsOptions.hostProcess: true", Allowance.PRIVILEGED)
    for container in spec.all_containers:
        if container.security_context is not None:
            for field in _fields(container.security_context):
                yield Violation(f"{spec.path(container)}.securityContext.{field}", Allowance.PRIVILEGED)


def _fields(security: Security) -> Iterator[str]:
    if security.privileged:
        yield "privileged: true"
    if (mount := security.proc_mount or "") not in PROC_MOUNTS:
        yield f"procMount: {mount}"
    if _is_host_process(security.windows_options):
        yield "windowsOptions.hostProcess: true"
    added = (security.capabilities and security.capabilities.add) or ()
    yield from (f"capabilities.add: {one}" for one in added if one not in CAPABILITIES)


def _is_host_process(windows: Windows | None) -> bool:
    return windows is not None and bool(windows.host_process)
