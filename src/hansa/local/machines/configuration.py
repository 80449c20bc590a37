"""The configuration files of containerd, CNI, kubelet and kube-proxy on a real node. Pure: `node` writes them."""

import json
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any

# Paths inside a node.
BIN, ETC, IMAGES = "/hansa/bin", "/hansa/etc", "/hansa/images"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"


def containerd(major: int, *, pause: str, runc: str, cni: str) -> str:
    """containerd's configuration in the format of its major version."""
    runtime_plugin = "io.containerd.grpc.v1.cri" if major < 2 else "io.containerd.cri.v1.runtime"
    images_plugin = "io.containerd.cri.v1.images"
    common = {
        "disable_apparmor": True,
        # Without CAP_SYS_RESOURCE the score cannot be lowered, and every sandbox would fail.
        "restrict_oom_score_adj": True,
        "containerd.runtimes.runc": {
            "runtime_type": "io.containerd.runc.v2",
            "options": {"SystemdCgroup": False, "BinaryName": runc},
        },
    }
    if major < 2:
        cri = {"sandbox_image": pause, "disable_tcp_service": True, **common, "cni": {"bin_dir": cni, "conf_dir": ETC}}
        plugins = {runtime_plugin: cri}
    else:
        cri = {**common, "cni": {"bin_dirs": [cni], "conf_dir": ETC}}
        plugins = {runtime_plugin: cri, images_plugin: {"pinned_images": {"sandbox": pause}}}
    top = {
        "version": 2 if major < 2 else 3,
        "root": "/var/lib/containerd",
        "state": "/run/containerd",
        "disabled_plugins": [f"io.containerd.snapshotter.v1.{name}" for name in ("aufs", "btrfs", "devmapper", "zfs")],
    }
    sections = [_section("grpc", {"address": CONTAINERD_SOCKET})]
    sections += [_section(f'plugins."{name}"', settings) for name, settings in plugins.items()]
    return _section("", top) + "".join(sections)


def _section(path: str, settings: Mapping[str, Any]) -> str:
    """A TOML table and its subtables. Strings, numbers, booleans and lists are written as JSON, which TOML accepts."""
    plain = {key: value for key, value in settings.items() if not isinstance(value, Mapping)}
    lines = [f"[{path}]"] if path else []
    lines += [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    below = [_section(f"{path}.{key}", value) for key, value in settings.items() if isinstance(value, Mapping)]
    return "\n".join(lines) + "\n" + "".join(below)


def cni(name: str, pods: IPv4Network) -> dict[str, Any]:
    """The CNI bridge of the node's pods, without masquerading: the router has a route to every pod."""
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": str(pods)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipMasq": False, "ipam": ipam}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": name, "plugins": [bridge, ports]}


def kubelet(
    address: IPv4Address, *, dns: IPv4Address, cgroup: str, taints: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """The kubelet's configuration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": str(address),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{ETC}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{ETC}/kubelet.crt",
        "tlsPrivateKeyFile": f"{ETC}/kubelet.key",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "resolvConf": f"{ETC}/resolv.conf",
        "clusterDomain": "cluster.local",
        "clusterDNS": [str(dns)],
        # Images cannot be pulled again, so none is collected, and only an almost full disk evicts pods.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "100Mi", "imagefs.available": "100Mi"},
        "registerWithTaints": [dict(taint) for taint in taints],
    }


def kube_proxy(node: str, pods: IPv4Network) -> dict[str, Any]:
    """kube-proxy's configuration."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": f"{ETC}/kube-proxy.kubeconfig"},
        "hostnameOverride": node,
        "clusterCIDR": str(pods),
        "oomScoreAdj": 0,
        # 0 keeps the machine's limits of connection tracking.
        "conntrack": {"maxPerCore": 0, "min": 0},
    }
