"""The command lines and configuration files of a local cluster's control plane.

Pure: `control_plane` writes the files and starts the programs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hansa.local.control_plane.pki import Pki
from hansa.local.machines.addresses import Networks
from hansa.local.state import Record
from hansa.programs.components import APISERVER, CONTROLLERS, KWOK, SCHEDULER

# Each cluster has its own; etcd is shared.
COMPONENTS = (APISERVER, CONTROLLERS, SCHEDULER, KWOK)
# Values of --lift-limits: more than two cores can use.
LIFTED_QPS, LIFTED_BURST, LIFTED_INFLIGHT, LIFTED_SYNCS = 5000, 10000, 4000, 50


@dataclass(frozen=True, slots=True)
class Site:
    """The addresses on which a control plane listens, and the networks of its cluster."""

    address: str
    ports: Mapping[str, int]
    networks: Networks
    netns: str | None = None

    @property
    def server(self) -> str:
        """The URL of the API server in the network namespace of the control plane."""
        return f"https://{self.address}:{self.ports[APISERVER]}"


@dataclass(frozen=True, slots=True)
class CommandLines:
    """The command lines of one cluster's components."""

    record: Record
    folder: Path
    site: Site
    etcd_socket: Path
    binaries: Mapping[str, Path]

    def argv(self, component: str) -> list[str]:
        """The command line of a component; the user's flags come last."""
        flags = {
            APISERVER: self._apiserver,
            CONTROLLERS: self._controllers,
            SCHEDULER: self._scheduler,
            KWOK: self._kwok,
        }[component]()
        return [str(self.binaries[component]), *flags, *self.record.spec.flags.get(component, ())]

    def files(self) -> dict[Path, str]:
        """The configuration files that the command lines refer to."""
        return {
            self.folder / "audit-policy.yaml": yaml.safe_dump(AUDIT_POLICY, sort_keys=False),
            self.folder / "scheduler.yaml": yaml.safe_dump(self._scheduler_config(), sort_keys=False),
            self.folder / "kwok.yaml": (Path(__file__).parent / "kwok.yaml").read_text(),
        }

    @property
    def _pki(self) -> Pki:
        return Pki(self.folder / "pki")

    def _pair(self, prefix: str, name: str) -> list[str]:
        cert, key = prefix.split(",")
        return [f"--{cert}={self._pki.certificate(name)}", f"--{key}={self._pki.key(name)}"]

    def _apiserver(self) -> list[str]:
        spec, pki = self.record.spec, self._pki
        return [
            f"--bind-address={self.site.address}",
            f"--advertise-address={self.site.address}",
            f"--secure-port={self.site.ports[APISERVER]}",
            # The API server refuses an endpoint on loopback, so there is none without a network namespace.
            f"--endpoint-reconciler-type={'lease' if self.site.netns else 'none'}",
            # No kube-proxy runs in its namespace, so the API server routes to the endpoints of services itself.
            "--enable-aggregator-routing=true",
            f"--etcd-servers=unix://{self.etcd_socket}",
            f"--etcd-prefix={etcd_prefix(spec.name)}",
            f"--service-cluster-ip-range={self.site.networks.services}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--enable-bootstrap-token-auth",
            "--allow-privileged=true",
            f"--client-ca-file={pki.certificate('ca')}",
            *self._pair("tls-cert-file,tls-private-key-file", "kube-apiserver"),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            *self._pair("service-account-key-file,service-account-signing-key-file", "service-accounts"),
            *self._pair("kubelet-client-certificate,kubelet-client-key", "kubelet-client"),
            f"--kubelet-certificate-authority={pki.certificate('ca')}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={pki.certificate('front-proxy-ca')}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            *self._pair("proxy-client-cert-file,proxy-client-key-file", "front-proxy-client"),
            *(self._audit() if spec.audit else ()),
            *(_lifted_server() if spec.lift_limits else ()),
        ]

    def _audit(self) -> list[str]:
        return [
            f"--audit-policy-file={self.folder / 'audit-policy.yaml'}",
            f"--audit-log-path={self.folder / 'log' / 'audit.log'}",
            "--audit-log-mode=batch",
        ]

    def _controllers(self) -> list[str]:
        pki = self._pki
        return [
            *self._client_of_apiserver(CONTROLLERS),
            f"--kubeconfig={pki.kubeconfig(CONTROLLERS)}",
            "--leader-elect=false",
            "--use-service-account-credentials",
            "--controllers=*,bootstrapsigner,tokencleaner",
            "--allocate-node-cidrs=false",
            f"--service-cluster-ip-range={self.site.networks.services}",
            f"--root-ca-file={pki.certificate('ca')}",
            f"--service-account-private-key-file={pki.key('service-accounts')}",
            *self._pair("cluster-signing-cert-file,cluster-signing-key-file", "ca"),
            *(_lifted_controllers() if self.record.spec.lift_limits else ()),
        ]

    def _scheduler(self) -> list[str]:
        return [*self._client_of_apiserver(SCHEDULER), f"--config={self.folder / 'scheduler.yaml'}"]

    def _scheduler_config(self) -> dict[str, Any]:
        connection: dict[str, Any] = {"kubeconfig": str(self._pki.kubeconfig(SCHEDULER))}
        if self.record.spec.lift_limits:
            connection |= {"qps": LIFTED_QPS, "burst": LIFTED_BURST}
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
        }

    def _client_of_apiserver(self, component: str) -> list[str]:
        kubeconfig = self._pki.kubeconfig(component)
        return [
            f"--bind-address={self.site.address}",
            f"--secure-port={self.site.ports[component]}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
        ]

    def _kwok(self) -> list[str]:
        return [
            f"--kubeconfig={self._pki.kubeconfig(KWOK)}",
            f"--config={self.folder / 'kwok.yaml'}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=40",
            f"--cidr={self.site.networks.pods}",
        ]


def etcd_prefix(cluster: str) -> str:
    """The key prefix of a cluster in the shared etcd."""
    return f"/hansa/{cluster}"


def _lifted_server() -> list[str]:
    return [
        f"--max-requests-inflight={LIFTED_INFLIGHT}",
        f"--max-mutating-requests-inflight={LIFTED_INFLIGHT}",
    ]


def _lifted_controllers() -> list[str]:
    kinds = ("deployment", "replicaset", "endpoint", "namespace", "gc", "service-endpoint", "statefulset", "job")
    return [
        f"--kube-api-qps={LIFTED_QPS}",
        f"--kube-api-burst={LIFTED_BURST}",
        *(f"--concurrent-{kind}-syncs={LIFTED_SYNCS}" for kind in kinds),
    ]


AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata"}],
}
