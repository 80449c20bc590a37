"""The flags of `hansa whatif`."""

import pytest

from hansa.kube.language import quantity
from hansa.scheduling.forecasting import changes
from hansa.scheduling.forecasting.changes import Drain, InvalidChange, Quota

CPU = quantity.UNIT


def test_a_node_has_the_default_number_of_pods_unless_it_is_given():
    assert changes.add_node("r1=cpu=8").amounts == {"cpu": 8 * CPU, "pods": 110 * CPU}
    assert changes.add_node("r1=cpu=8,pods=5").amounts == {"cpu": 8 * CPU, "pods": 5 * CPU}


def test_a_target_has_a_slash_in_its_name():
    assert changes.drain("default/c2/node-1") == Drain("default/c2", "node-1")


def test_a_quota_may_name_requests():
    assert changes.quota("shop=requests.cpu=2") == Quota("shop", {"cpu": 2 * CPU})


@pytest.mark.parametrize("text", ["", "r1", "r1=", "=cpu=8", "r1=cpu", "r1=cpu=many", "r1=cpu=-1"])
def test_a_node_that_cannot_be_parsed_is_refused_with_the_form(text):
    with pytest.raises(InvalidChange, match="use CLUSTER=cpu=8,memory=32Gi"):
        changes.add_node(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("r1=cpuu=8", '"cpuu" is no resource: use cpu, memory'), ("r1=cpu=8,cpu=9", "a resource is given twice")],
)
def test_a_slip_is_refused_with_its_reason(text, reason):
    with pytest.raises(InvalidChange, match=reason):
        changes.add_node(text)
    with pytest.raises(InvalidChange, match=reason):
        changes.quota(text)


def test_amounts_are_quantities_of_any_resource_that_a_node_has():
    made = changes.add_node("r1=cpu=8.5, memory=1e9, nvidia.com/gpu=2, hugepages-2Mi=4Mi")
    assert (made.amounts["cpu"], made.amounts["memory"]) == (8.5 * CPU, 10**9 * CPU)
    assert {"nvidia.com/gpu", "hugepages-2Mi"} <= made.amounts.keys()


@pytest.mark.parametrize("text", ["", "r1", "/n1", "r1/"])
def test_a_drain_that_cannot_be_parsed_is_refused(text):
    with pytest.raises(InvalidChange, match="use CLUSTER/NODE"):
        changes.drain(text)
