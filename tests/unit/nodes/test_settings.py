"""Settings of virtual nodes."""

import pytest

from hansa.nodes import own_address, settings
from hansa.runtime.errors import HansaError


def test_the_taint_is_the_provider_and_its_parts_can_be_set():
    assert str(settings.provider_taint("k8s", {})) == "virtual-kubelet.io/provider=k8s:NoSchedule"
    variables = {"VKUBELET_TAINT_KEY": "a", "VKUBELET_TAINT_VALUE": "b", "VKUBELET_TAINT_EFFECT": "NoExecute"}
    assert str(settings.provider_taint("k8s", variables)) == "a=b:NoExecute"


def test_an_unknown_effect_is_refused():
    with pytest.raises(HansaError, match="must be one of NoSchedule, PreferNoSchedule, NoExecute"):
        settings.provider_taint("k8s", {"VKUBELET_TAINT_EFFECT": "Never"})


def test_a_label_comes_from_the_environment():
    assert settings.extra_label({}) == {}
    assert settings.extra_label({"VKUBELET_NODE_LABEL": "zone:north"}) == {"zone": "north"}


@pytest.mark.parametrize("text", ["zone", ":north", "a:b:c"])
def test_a_label_of_another_form_is_refused(text):
    with pytest.raises(HansaError, match="must be of the form key:value"):
        settings.extra_label({"VKUBELET_NODE_LABEL": text})


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a" * 64, "a..b"])
def test_a_name_that_no_node_can_have_is_refused(name):
    with pytest.raises(HansaError, match="invalid node name"):
        settings.NodeSettings(name, "hamburg")


def test_an_ip_address_can_be_a_name_as_the_seed_has_it():
    assert settings.NodeSettings("10.0.0.7", "hamburg", internal_ip="10.0.0.7").name == "10.0.0.7"


def test_an_address_that_is_none_is_refused():
    with pytest.raises(HansaError, match='"here" is not an IP address'):
        settings.NodeSettings("vn1", "hamburg", internal_ip="here")


async def test_the_address_of_this_process_is_the_one_on_the_way_to_the_server():
    assert await own_address.towards("https://127.0.0.1:6443") == "127.0.0.1"
    assert await own_address.towards("https://[::1]:6443") == "::1"


async def test_a_server_without_an_address_is_reported():
    with pytest.raises(HansaError, match="set VKUBELET_POD_IP"):
        await own_address.towards("https://nowhere.invalid")
