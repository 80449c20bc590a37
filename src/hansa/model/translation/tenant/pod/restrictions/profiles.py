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
        yield from _unconfined("spec.securityContext", of_pod)
        for sysctl in of_pod.sysctls or ():
            if sysctl.name not in SYSCTLS:
                yield Violation(f"spec.securityContext.sysctls: {sysctl.name}", Allowance.SYSCTLS)
    for path, container in spec.all_containers:
        if container.security_context is not None:
            yield from _unconfined(f"{path}.securityContext", container.security_context)


def annotated(pod: Object) -> Iterator[Violation]:
    """AppArmor profiles that are set by annotation."""
    for key, value in pod.annotations.items():
        is_profile = key.startswith(_APP_ARMOR)
        if is_profile and value not in _APP_ARMOR_VALUES and not value.startswith("localhost/"):
            yield Violation(f"metadata.annotations[{key}]: {value}", Allowance.APP_ARMOR)


def _unconfined(path: str, security: PodSecurityContext | Security) -> Iterator[Violation]:
    for name, profile, allowance in (
        ("seccompProfile", security.seccomp_profile, Allowance.SECCOMP),
        ("appArmorProfile", security.app_armor_profile, Allowance.APP_ARMOR),
    ):
        if profile is not None and profile.type not in PROFILES:
            yield Violation(f"{path}.{name}.type: {profile.type}", allowance)
    if (options := security.se_linux_options) is not None:
        for field, value, allowed in (
            ("type", options.type or "", SE_LINUX_TYPES),
            ("user", options.user or "", ("",)),
            ("role", options.role or "", ("",)),
        ):
            if value not in allowed:
                yield Violation(f"{path}.seLinuxOptions.{field}: {value}", Allowance.SE_LINUX)
