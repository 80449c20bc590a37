"""Pods with one field each of the Pod Security Standards, and of what Hansa refuses beyond them.

Every pod meets "restricted" but for its field. Fields of containers are tried in each of the three lists.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from hansa.kube.objects import Object
from worlds import merged

Spec = dict[str, Any]
LISTS = ("containers", "initContainers", "ephemeralContainers")
ROLE = "node-role.kubernetes.io/"
CONTAINER: Spec = {
    "name": "main",
    "image": "example.com/app:1",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}
SPEC: Spec = {
    "containers": [CONTAINER],
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "automountServiceAccountToken": False,
}


class Case(NamedTuple):
    """One field with its value. `spec` or one of `containers` is merged into the pod; None removes a field."""

    control: str  # the name that the standard gives it
    shown: str
    spec: Spec = {}  # noqa: RUF012 - never changed
    containers: tuple[Spec, ...] = ()
    annotations: Mapping[str, str] = {}

    def pods(self) -> Iterator[tuple[str, Object]]:
        """The pods of the case, with the list that the container is in."""
        if not self.containers:
            yield "", self._pod(merged(SPEC, self.spec))
        for more, where in itertools.product(self.containers, LISTS):
            container = merged(CONTAINER, more) | {"name": "main" if where == LISTS[0] else "other"}
            yield where, self._pod(merged(SPEC, self.spec) | {where: [container]})

    def _pod(self, spec: Spec) -> Object:
        metadata = {"name": "tried", "namespace": "shop", "annotations": dict(self.annotations)}
        return Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def security(control: str, **fields: Any) -> Iterator[Case]:
    """A field of a container's securityContext."""
    yield Case(control, shown(fields), containers=({"securityContext": fields},))


def both(control: str, **fields: Any) -> Iterator[Case]:
    """A field of the securityContext of the pod, and of a container."""
    yield Case(control, shown(fields), {"securityContext": fields})
    yield from security(control, **fields)


def volume(control: str, **source: Any) -> Case:
    """A volume."""
    return Case(control, next(iter(source)), {"volumes": [{"name": "v", **source}]})


def shown(fields: Mapping[str, Any]) -> str:
    """The path to the first value, and the value."""
    name, value = next(iter(fields.items()))
    if isinstance(value, Mapping):
        return f"{name}.{shown(value)}"
    text = value[0] if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else value
    return f"{name}: {text}"


def _host() -> Iterator[Case]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        yield Case("Host namespaces", f"{field}: true", {field: True})
    for port in (0, 80):
        ports = {"ports": [{"containerPort": 80, "hostPort": port}]}
        yield Case("Host ports", f"hostPort: {port}", containers=(ports,))
    for host in ("192.0.2.1", "127.0.0.1", "localhost", ""):
        actions = ({"httpGet": {"port": 80, "host": host}}, {"tcpSocket": {"port": 80, "host": host}})
        probes = itertools.product(("livenessProbe", "readinessProbe", "startupProbe"), actions)
        hooks = itertools.product(("postStart", "preStop"), actions)
        handlers: tuple[Spec, ...] = (
            *({name: one} for name, one in probes),
            *({"lifecycle": {name: one}} for name, one in hooks),
        )
        yield Case("Host probes and hooks", f"host: {host or 'empty'}", containers=handlers)


def _containers() -> Iterator[Case]:
    yield from security("Privileged containers", privileged=True, allowPrivilegeEscalation=None)
    for mount in ("Default", "Unmasked"):
        mounted = {"securityContext": {"procMount": mount}}
        yield Case("/proc mount type", f"procMount: {mount}", {"hostUsers": False}, (mounted,))
    names = ("NET_BIND_SERVICE", "CHOWN", "SETFCAP", "MKNOD", "AUDIT_WRITE", "SYS_CHROOT", "NET_RAW", "SYS_ADMIN")
    for name in (*names, "SYS_PTRACE", "BPF", "CAP_CHOWN", "ALL", "chown"):
        yield from security("Capabilities", capabilities={"add": [name]})
    process = {"windowsOptions": {"hostProcess": True}, "seccompProfile": None}
    plain = {"name": "main", "image": "example.com/app:1"}
    windows = {"hostNetwork": True, "os": {"name": "windows"}, "securityContext": process, "containers": [plain]}
    yield Case("HostProcess", "windowsOptions.hostProcess: true", windows)


def _profiles() -> Iterator[Case]:
    for kind in ("Unconfined", "RuntimeDefault"):
        yield from both("Seccomp", seccompProfile={"type": kind})
        yield from both("AppArmor", appArmorProfile={"type": kind})
    yield from both("Seccomp", seccompProfile={"type": "Localhost", "localhostProfile": "mine.json"})
    yield from both("AppArmor", appArmorProfile={"type": "Localhost", "localhostProfile": "mine"})
    for value in ("unconfined", "runtime/default", "localhost/mine"):
        key = "container.apparmor.security.beta.kubernetes.io/main"
        yield Case("AppArmor", f"annotation: {value}", annotations={key: value})
    types = ("container_t", "container_init_t", "container_kvm_t", "container_engine_t", "spc_t", "unconfined_t")
    for name in types:
        yield from both("SELinux", seLinuxOptions={"type": name})
    yield from both("SELinux", seLinuxOptions={"user": "system_u"})
    yield from both("SELinux", seLinuxOptions={"role": "system_r"})
    yield from both("SELinux", seLinuxOptions={"level": "s0:c1,c2"})
    allowed = (
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"),
        *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
        *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
        *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    )
    refused = ("kernel.msgmax", "kernel.shmmax", "net.core.somaxconn", "net.ipv4.ip_forward", "fs.mqueue.msg_max")
    for name in (*allowed, *refused):
        yield Case("Sysctls", name, {"securityContext": {"sysctls": [{"name": name, "value": "1"}]}})


def _volumes() -> Iterator[Case]:
    yield volume("HostPath volumes", hostPath={"path": "/etc"})
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    disk = {"spec": claim["spec"] | {"storageClassName": "offered"}}
    for kind, source in (
        *(("emptyDir", {}), ("configMap", {"name": "c"}), ("secret", {"secretName": "s"})),
        *(("downwardAPI", {}), ("persistentVolumeClaim", {"claimName": "c"})),
        *(("ephemeral", {"volumeClaimTemplate": disk}), ("image", {"reference": "example.com/data:1"})),
        *(("nfs", {"server": "192.0.2.1", "path": "/"}), ("csi", {"driver": "example.com"}), ("fc", {"wwids": ["1"]})),
        ("iscsi", {"targetPortal": "192.0.2.1", "iqn": "iqn.2026-01.com.example:disk", "lun": 0}),
        *(("rbd", {"monitors": ["a"], "image": "b"}), ("cephfs", {"monitors": ["a"]})),
        *(
            ("flexVolume", {"driver": "a/b"}),
            ("awsElasticBlockStore", {"volumeID": "a"}),
            ("cinder", {"volumeID": "a"}),
        ),
        *(
            ("gcePersistentDisk", {"pdName": "a"}),
            ("azureDisk", {"diskName": "a", "diskURI": "https://a.blob.core.windows.net/b.vhd"}),
        ),
        *(("azureFile", {"secretName": "a", "shareName": "b"}), ("vsphereVolume", {"volumePath": "a"})),
        *(("portworxVolume", {"volumeID": "a"}), ("glusterfs", {"endpoints": "a", "path": "b"})),
        *(("quobyte", {"registry": "a:1", "volume": "b"}), ("flocker", {"datasetName": "a"})),
        *(("photonPersistentDisk", {"pdID": "a"}), ("gitRepo", {"repository": "a"})),
        *(
            ("storageos", {"volumeName": "a"}),
            ("scaleIO", {"gateway": "a", "system": "b", "volumeName": "c", "secretRef": {}}),
        ),
    ):
        yield volume("Volume types", **{kind: source})
    for kind, source in (
        *(("configMap", {"name": "c"}), ("secret", {"name": "s"}), ("downwardAPI", {})),
        ("serviceAccountToken", {"path": "token"}),
        ("clusterTrustBundle", {"name": "example.com:x:y", "path": "bundle"}),
        ("podCertificate", {"signerName": "example.com/x", "keyType": "ED25519", "credentialBundlePath": "c"}),
    ):
        projected = {"projected": {"sources": [{kind: source}]}}
        yield Case("Projected sources", kind, {"volumes": [{"name": "v", **projected}]})


def _restricted() -> Iterator[Case]:
    yield from security("Privilege escalation", allowPrivilegeEscalation=True)
    unset = {"securityContext": {"allowPrivilegeEscalation": None}}
    yield Case("Privilege escalation", "allowPrivilegeEscalation not set", containers=(unset,))
    yield from security("Running as root", runAsNonRoot=False)
    yield Case("Running as root", "runAsNonRoot not set", {"securityContext": {"runAsNonRoot": None}})
    yield from both("Running as root", runAsUser=0)
    yield from both("Running as root", runAsUser=1000)
    yield Case("Seccomp", "seccompProfile not set", {"securityContext": {"seccompProfile": None}})
    for drop in (["ALL"], ["CHOWN"]):
        yield from security("Capabilities", capabilities={"drop": drop})
    yield Case("Capabilities", "capabilities.drop not set", containers=({"securityContext": {"capabilities": None}},))


def _ours() -> Iterator[Case]:
    for key, value in (
        *((f"{ROLE}control-plane", ""), (f"{ROLE}control-plane", "yes"), (f"{ROLE}master", ""), (f"{ROLE}etcd", "")),
        *(("CriticalAddonsOnly", ""), ("spot", "yes")),
    ):
        toleration = {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
        yield Case("Nodes", f"toleration of {key}={value}", {"tolerations": [toleration]})
    yield Case("Nodes", "toleration of all taints", {"tolerations": [{"operator": "Exists"}]})
    waiting = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    yield Case("Nodes", "toleration of node.kubernetes.io/not-ready", {"tolerations": [waiting]})
    yield Case("Nodes", f"nodeSelector: {ROLE}control-plane", {"nodeSelector": {f"{ROLE}control-plane": ""}})


CASES = tuple(case for part in (_host, _containers, _profiles, _volumes, _restricted, _ours) for case in part())
