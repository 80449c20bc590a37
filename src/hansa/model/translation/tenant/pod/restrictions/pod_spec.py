"""The parts of a pod's spec that restrictions read.

Where a new field could give a container more rights, unknown fields are refused: these structs are allow-lists.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from hansa.kube.language.tolerations import Toleration
from hansa.model.translation.tenant import tenant_settings
from hansa.model.translation.tenant.tenant_settings import Allowance, TenantSettings

Spec = dict[str, Any]


class Violation(NamedTuple):
    """A field with its value, and the allowance that lifts the restriction, if one does."""

    field: str
    allowance: Allowance | None

    def is_allowed(self, tenant: TenantSettings) -> bool:
        """Whether the restriction is lifted for this tenant."""
        return self.allowance is not None and tenant_settings.is_allowed(self.allowance, tenant)


class Lax(msgspec.Struct, gc=False, rename="camel"):
    """A part with further fields that restrict nothing; null means absent."""


class Strict(msgspec.Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    """A part of which every field is known."""


class Capabilities(Strict):
    """Capabilities of a container beside the runtime's default."""

    add: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None


class Windows(Strict):
    """The windowsOptions of a pod or a container."""

    host_process: bool | None = None
    gmsa_credential_spec: str | None = None
    gmsa_credential_spec_name: str | None = None
    run_as_user_name: str | None = None


class SeLinux(Strict):
    """The seLinuxOptions of a pod or a container."""

    level: str | None = None
    role: str | None = None
    type: str | None = None
    user: str | None = None


class Profile(Strict):
    """A seccomp or AppArmor profile."""

    type: str = ""
    localhost_profile: str | None = None


class Sysctl(Strict):
    """A kernel parameter of a pod."""

    name: str = ""
    value: str = ""


class Security(Strict):
    """The securityContext of a container."""

    allow_privilege_escalation: bool | None = None
    app_armor_profile: Profile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_options: SeLinux | None = None
    seccomp_profile: Profile | None = None
    windows_options: Windows | None = None


class PodSecurityContext(Strict):
    """The securityContext of a pod."""

    app_armor_profile: Profile | None = None
    fs_group: int | None = None
    fs_group_change_policy: str | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_change_policy: str | None = None
    se_linux_options: SeLinux | None = None
    seccomp_profile: Profile | None = None
    supplemental_groups: tuple[int, ...] | None = None
    supplemental_groups_policy: str | None = None
    sysctls: tuple[Sysctl, ...] | None = None
    windows_options: Windows | None = None


class Port(Lax):
    """A port of a container."""

    host_port: int | None = None


class _WithHost(Lax):
    host: str | None = None


class Handler(Lax):
    """A probe, or the handler of a lifecycle hook."""

    http_get: _WithHost | None = None
    tcp_socket: _WithHost | None = None


class Lifecycle(Lax):
    """The lifecycle hooks of a container."""

    post_start: Handler | None = None
    pre_stop: Handler | None = None


class Container(Lax):
    """A container of any of the three lists."""

    name: str = ""
    security_context: Security | None = None
    ports: tuple[Port, ...] | None = None
    liveness_probe: Handler | None = None
    readiness_probe: Handler | None = None
    startup_probe: Handler | None = None
    lifecycle: Lifecycle | None = None


class Named(Lax):
    """Something with a name."""

    name: str = ""


class Expression(Lax):
    """An expression of a node selector."""

    key: str = ""
    operator: str = ""


class _Term(Lax):
    match_expressions: tuple[Expression, ...] | None = None


class _Terms(Lax):
    node_selector_terms: tuple[_Term, ...] | None = None


class _NodeAffinity(Lax):
    required: _Terms | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class _Affinity(Lax):
    node_affinity: _NodeAffinity | None = None


class PodSpec(Lax):
    """The spec of a pod."""

    host_network: bool | None = None
    host_pid: bool | None = msgspec.field(name="hostPID", default=None)
    host_ipc: bool | None = msgspec.field(name="hostIPC", default=None)
    os: Named | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    priority_class_name: str = ""
    runtime_class_name: str | None = None
    security_context: PodSecurityContext | None = None
    affinity: _Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    volumes: tuple[dict[str, msgspec.Raw], ...] | None = None  # a volume's type is the name of a field
    image_pull_secrets: tuple[Named, ...] | None = None
    resource_claims: tuple[Named, ...] | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    ephemeral_containers: tuple[Container, ...] | None = None

    @property
    def all_containers(self) -> Iterator[Container]:
        """Every container."""
        for containers in (self.init_containers, self.containers, self.ephemeral_containers):
            if containers:
                yield from containers

    def path(self, container: Container) -> str:
        """The path of a container's field."""
        lists = {"initContainers": self.init_containers, "ephemeralContainers": self.ephemeral_containers}
        field = next((name for name, those in lists.items() if any(one is container for one in those or ())), None)
        return f"spec.{field or 'containers'}[{container.name}]"

    @property
    def required_expressions(self) -> Iterator[Expression]:
        """The expressions of the required node affinity."""
        affinity = self.affinity.node_affinity if self.affinity else None
        terms = affinity.required.node_selector_terms if affinity and affinity.required else None
        for term in terms or ():
            yield from term.match_expressions or ()
