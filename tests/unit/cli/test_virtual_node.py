"""The flags of `hansa virtual-node` are parsed, or refused with one sentence."""

import argparse
from pathlib import Path

import pytest

from hansa.cli import virtual_node
from hansa.kube.language.tolerations import Taint
from hansa.modes.tensile_settings import Controllers
from hansa.runtime.errors import HansaError

# As in tensile-kube's own description.
SEED = (
    "--nodename 10.1.2.3 --provider k8s --kube-api-qps 500 --kube-api-burst 1000 --client-qps 500 --client-burst 1000"
    " --kubeconfig /root/server-kube.config --client-kubeconfig /client-kube.config --klog.v 4 --log-level debug"
)
LOWER = ["--client-kubeconfig", "lower"]


def read(*flags, **environment):
    parser = argparse.ArgumentParser()
    virtual_node.add_to(parser.add_subparsers())
    return virtual_node.read(parser.parse_args(["virtual-node", *flags]), environment)


def test_the_command_line_of_the_seed_is_understood():
    settings = read(*SEED.split(), KUBELET_PORT="10350")
    [lower] = settings.lowers
    assert settings.upper.kubeconfig == Path("/root/server-kube.config")
    assert lower.source.kubeconfig == Path("/client-kube.config")
    assert (lower.node.name, lower.node.internal_ip, lower.node.port) == ("10.1.2.3", "10.1.2.3", 10350)
    assert lower.node.taint == Taint("virtual-kubelet.io/provider", "k8s", "NoSchedule")
    assert settings.controllers == set(Controllers)
    assert lower.link.ignored_labels == {"group.batch.scheduler.tencent.com"}
    assert lower.link.node == "10.1.2.3"


def test_controllers_are_switched_under_both_spellings():
    for flag in ("--enable-controllers", "--enableControllers"):
        assert read(*LOWER, flag, "PVControllers, RBACControllers").controllers == {
            Controllers.VOLUMES,
            Controllers.RIGHTS,
        }
    assert read(*LOWER, "--enable-controllers", "").controllers == set()


def test_the_taint_comes_from_the_environment_or_not_at_all():
    environment = {"VKUBELET_TAINT_KEY": "k", "VKUBELET_TAINT_VALUE": "v", "VKUBELET_TAINT_EFFECT": "NoExecute"}
    [lower] = read(*LOWER, **environment).lowers
    assert lower.node.taint == Taint("k", "v", "NoExecute")
    assert lower.link.taint == "k"
    assert read(*LOWER, "--disable-taint").lowers[0].node.taint is None


def test_the_node_is_named_by_flag_then_by_variable_then_as_virtual_kubelet_does():
    assert read(*LOWER, "--nodename", "a", DEFAULTNODE_NAME="b").lowers[0].node.name == "a"
    assert read(*LOWER, DEFAULTNODE_NAME="b").lowers[0].node.name == "b"
    assert read(*LOWER).lowers[0].node.name == "virtual-kubelet"


def test_a_label_of_the_node_steers_the_upper_scheduler_and_is_not_asked_of_lower_nodes():
    [lower] = read(*LOWER, "--nodename", "vn", VKUBELET_NODE_LABEL="clusterID:hamburg").lowers
    assert lower.node.labels == {"clusterID": "hamburg"}
    assert lower.link.node_labels["clusterID"] == "hamburg"
    assert lower.link.node_labels["kubernetes.io/hostname"] == "vn"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("", "", "443"),
        ("10.0.0.1:6443", "10.0.0.1", "6443"),
        ("api.example", "api.example", "443"),
        ("[fd00::1]:6443", "fd00::1", "6443"),
        ("fd00::1", "fd00::1", "443"),
    ],
)
def test_where_lower_pods_reach_the_upper_api_server(text, host, port):
    link = read(*LOWER, "--upper-address", text).lowers[0].link
    assert (link.api_host, link.api_port) == (host, port)


@pytest.mark.parametrize(
    ("flags", "environment", "sentence"),
    [
        ([], {}, "no lower cluster given: use --client-kubeconfig FILE"),
        ([*LOWER, "--provider", "mock"], {}, 'unknown --provider "mock"; supported: k8s'),
        ([*LOWER, "--enable-controllers", "PodControllers"], {}, 'unknown controller "PodControllers"; supported'),
        ([*LOWER, "--nodename", "Not_A_Name"], {}, 'invalid node name "Not_A_Name"'),
        ([*LOWER, "--config", "f"], {}, "--client-kubeconfig cannot be used with --config; set it in the file"),
        (["--config", "f", "--system-services"], {}, "--system-services cannot be used with --config"),
        (["--config", "f", "--ignore-labels", "a"], {}, "--ignore-labels cannot be used with --config"),
        (["--config", "/nowhere.yaml"], {}, "cannot read /nowhere.yaml: No such file"),
        (LOWER, {"KUBELET_PORT": "many"}, 'invalid KUBELET_PORT "many"'),
        (LOWER, {"KUBELET_PORT": "65536"}, 'invalid KUBELET_PORT "65536": use a number from 1 to 65535'),
        (LOWER, {"APISERVER_CERT_LOCATION": "/nowhere", "APISERVER_KEY_LOCATION": "/k"}, "cannot read /nowhere, named"),
        (LOWER, {"APISERVER_CERT_LOCATION": __file__}, "APISERVER_KEY_LOCATION is not set, but"),
        (LOWER, {"VKUBELET_TAINT_EFFECT": "Never"}, 'VKUBELET_TAINT_EFFECT is "Never"'),
        (LOWER, {"VKUBELET_POD_IP": "here"}, '"here" is not an IP address'),
        (LOWER, {"VKUBELET_NODE_LABEL": "x"}, "must be of the form key:value"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(flags, environment, sentence):
    with pytest.raises(HansaError, match=sentence):
        read(*flags, **environment)
