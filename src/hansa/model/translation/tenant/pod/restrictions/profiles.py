"""Restrictions on what confines containers: SELinux, seccomp and AppArmor profiles, and sysctls."""

from collections.abc import Iterator
from typing import Final

from hansa.kube.objects import Object
from hansa.model.translation.tenant.pod.restrictions.pod_spec import PodSecurityContext, PodSpec, Security, Violation
from hansa.model.translation.tenant.tenant_settings import Allowance

PROFILES: Final = frozenset({"RuntimeDefault", "Localhost"})
SE_LINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        *(f"net.ipv4.{name}" for name in ("ip_local_port_range", "ip_local_reserved_ports", "ping_group_range")),
        *(f"net.ipv4.{name}" for name in ("ip_unprivileged_port_start", "tcp_syncookies", "tcp_keepalive_time")),
        *(f"net.ipv4.{name}" for name in ("tcp_fin_timeout", "tcp_keepalive_intvl", "tcp_keepalive_probes")),
        *(f"net.ipv4.{name}" for name in ("tcp_rmem", "tcp_wmem")),
    }
)
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"  # the annotation that preceded the field
_APP_ARMOR_VALUES: Final = ("", "runtime/default")


def violations(spec: PodSpec) -> Iterator[Violation]:
    """Fields that make the confinement of a container weaker than the default."""
    if (of_pod := spec.security_context) is not None:
        for field, allowance in _unconfined(of_pod):
            yield Violation(f"spec.securityContext.{field}", allowance)
        for sysctl in of_pod.sysctls or ():
            if sysctl.name not in SYSCTLS:
                yield Violation(f"spec.securityContext.sysctls: {sysctl.name}", Allowance.SYSCTLS)
    for container in spec.all_containers:
        if container.security_context is not None:
            for field, allowance in _unconfined(container.security_context):
                yield Violation(f"{spec.path(container)}.securityContext.{field}", allowance)


def annotated(pod: Object) -> Iterator[Violation]:
    """AppArmor profiles that are set by annotation."""
    for key, value in pod.annotations.items():
        is_profile = key.startswith(_APP_ARMOR)
        if is_profile and value not in _APP_ARMOR_VALUES and not value.startswith("localhost/"):
            yield Violation(f"metadata.annotations[{key}]: {value}", Allowance.APP_ARMOR)


def _unconfined(security: PodSecurityContext | Security) -> Iterator[tuple[str, Allowance]]:
    seccomp, app_armor, options = security.seccomp_profile, security.app_armor_profile, security.se_linux_options
    if seccomp is not None and seccomp.type not in PROFILES:
        yield f"seccompProfile.type: {seccomp.type}", Allowance.SECCOMP
    if app_armor is not None and app_armor.type not in PROFILES:
        yield f"appArmorProfile.type: {app_armor.type}", Allowance.APP_ARMOR
    if options is None:
        return
    if (options.type or "") not in SE_LINUX_TYPES:
        yield f"seLinuxOptions.type: {options.type}", Allowance.SE_LINUX
    if options.user:
        yield f"seLinuxOptions.user: {options.user}", Allowance.SE_LINUX
    if options.role:
        yield f"seLinuxOptions.role: {options.role}", Allowance.SE_LINUX
