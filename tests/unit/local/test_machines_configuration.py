"""The configuration files of a node's programs."""

import tomllib
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest

from hansa.local.machines import configuration


def containerd(major: int) -> dict[str, Any]:
    return tomllib.loads(configuration.containerd(major, pause="x/pause:1", runc="/usr/sbin/runc", cni="/usr/lib/cni"))


def test_containerd_1_gets_the_second_format() -> None:
    config = containerd(1)
    assert config["version"] == 2
    cri = config["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["sandbox_image"] == "x/pause:1"
    assert cri["cni"] == {"bin_dir": "/usr/lib/cni", "conf_dir": configuration.ETC}
    assert cri["containerd"]["runtimes"]["runc"]["options"] == {"SystemdCgroup": False, "BinaryName": "/usr/sbin/runc"}


def test_containerd_2_gets_the_third_format() -> None:
    config = containerd(2)
    assert config["version"] == 3
    assert config["plugins"]["io.containerd.cri.v1.images"]["pinned_images"] == {"sandbox": "x/pause:1"}
    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["cni"] == {"bin_dirs": ["/usr/lib/cni"], "conf_dir": configuration.ETC}
    assert runtime["containerd"]["runtimes"]["runc"]["runtime_type"] == "io.containerd.runc.v2"


@pytest.mark.parametrize("major", [1, 2])
def test_containerd_of_any_version_writes_where_the_node_is_and_asks_for_no_right_that_may_be_withheld(
    major: int,
) -> None:
    config = containerd(major)
    assert (config["root"], config["state"]) == ("/var/lib/containerd", "/run/containerd")
    assert config["grpc"] == {"address": configuration.CONTAINERD_SOCKET}
    cri = next(plugin for plugin in config["plugins"].values() if "containerd" in plugin)
    assert cri["restrict_oom_score_adj"] is True
    assert cri["disable_apparmor"] is True


def test_pods_are_never_masqueraded() -> None:
    config = configuration.cni("a", IPv4Network("10.101.2.0/24"))
    bridge = config["plugins"][0]
    assert bridge["ipMasq"] is False
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.101.2.0/24"}]]
    assert [plugin["type"] for plugin in config["plugins"]] == ["bridge", "portmap"]


def test_a_kubelet_refuses_anonymous_requests_and_stays_in_its_cgroup() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    config = configuration.kubelet(
        IPv4Address("10.0.1.2"), dns=IPv4Address("10.1.0.10"), cgroup="hansa-x.a.1", taints=[taint]
    )
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["cgroupRoot"] == "/hansa-x.a.1"
    assert config["clusterDNS"] == ["10.1.0.10"]
    assert config["registerWithTaints"] == [taint]


def test_kube_proxy_leaves_the_limits_of_the_machine_alone() -> None:
    config = configuration.kube_proxy("a-1", IPv4Network("10.101.0.0/16"))
    assert config["conntrack"] == {"maxPerCore": 0, "min": 0}
    assert config["hostnameOverride"] == "a-1"
