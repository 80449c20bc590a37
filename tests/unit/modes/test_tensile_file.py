"""A file describes many lower clusters for one process."""

from pathlib import Path

import pytest

from hansa.kube.language.tolerations import Taint
from hansa.modes import tensile_file
from hansa.modes.tensile_settings import Controllers
from hansa.runtime.errors import HansaError

LEAGUE = """
upper: {kubeconfig: upper.kubeconfig, context: league}
upperAddress: 10.0.0.1:6443
ignoreLabels: [queue]
controllers: [PVControllers]
excludedNamespaces: [private]
systemServices: true
lowers:
- name: hamburg
  kubeconfig: /etc/hamburg.kubeconfig
  labels: {clusterID: hamburg}
- name: lubeck
  node: vn-lubeck
  kubeconfig: ../lubeck.kubeconfig
  taint: dedicated=batch:NoExecute
  address: 10.0.0.9
  scheduler: batch
  keepsPriorityClasses: true
- name: visby
  taint: none
"""


def parse(text):
    return tensile_file.parse(text, origin="league.yaml", folder=Path("/league"))


def test_every_field_of_the_file_is_parsed():
    settings = parse(LEAGUE)
    assert (settings.upper.kubeconfig, settings.upper.context) == (Path("/league/upper.kubeconfig"), "league")
    assert settings.controllers == {Controllers.VOLUMES}
    assert settings.excluded_namespaces == {"private"}
    assert settings.syncs_system_services
    hamburg, lubeck, visby = settings.lowers
    assert hamburg.source.kubeconfig == Path("/etc/hamburg.kubeconfig")
    assert (hamburg.node.name, hamburg.node.lower) == ("hamburg", "hamburg")
    assert hamburg.node.taint == Taint("virtual-kubelet.io/provider", "k8s", "NoSchedule")
    assert hamburg.link.node_labels["clusterID"] == "hamburg"
    assert (hamburg.link.api_host, hamburg.link.api_port) == ("10.0.0.1", "6443")
    assert hamburg.link.ignored_labels == {"queue"}
    assert lubeck.source.kubeconfig == Path("/league/../lubeck.kubeconfig")
    assert (lubeck.node.name, lubeck.node.lower, lubeck.node.internal_ip) == ("vn-lubeck", "lubeck", "10.0.0.9")
    assert lubeck.node.taint == Taint("dedicated", "batch", "NoExecute")
    assert lubeck.link.scheduler == "batch"
    assert lubeck.link.keeps_priority_class
    assert visby.node.taint is None
    assert visby.source.kubeconfig is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("lowers: [", "league.yaml is not YAML at line 1"),
        ("lowers: []", "no lower cluster: configure at least one"),
        ("{}", "league.yaml: Object missing required field `lowers`"),
        ("lowers: [{name: a, kubeconf: x}]", r"league.yaml: .*unknown field `kubeconf` - at `\$.lowers\[0\]`"),
        ("lowers: [{name: a}, {name: a}]", "duplicate lower cluster a"),
        ("lowers: [{name: a}, {name: b, node: a}]", "duplicate node a"),
        ("lowers: [{name: a, taint: x}]", 'taint "x" is not of the form key=value:effect'),
        ("lowers: [{name: a, taint: 'x:Never'}]", 'taint "x:Never" has an unknown effect'),
        ("lowers: [{name: a}]\ncontrollers: [x]", 'unknown controller "x"; supported'),
        ("lowers: [{name: a}]\nupperAddress: h:99999", '"h:99999" has an invalid port: use a number from 1 to 65535'),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(text, sentence):
    with pytest.raises(HansaError, match=sentence):
        parse(text)
