"""The configuration of the multi-scheduler: the seed's file, and what is wrong with others."""

import json
from pathlib import Path

import pytest
import yaml

from hansa.modes import multi_scheduler_file, multi_scheduler_settings
from hansa.modes.tensile_settings import InvalidSettings
from hansa.runtime.errors import HansaError
from hansa.scheduling.extender import server

SEED = {
    "kind": "KubeSchedulerConfiguration",
    "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
    "clientConnection": {"kubeconfig": "~/root/kube/config"},
    "leaderElection": {"leaderElect": True},
    "plugins": {"filter": {"enabled": [{"name": "multi-scheduler"}]}},
    "pluginConfig": [
        {
            "name": "multi-scheduler",
            "args": {"cluster_configuration": {"test": {"kube_config": "/root/cloud.config"}}},
        }
    ],
}


def parsed(file):
    return multi_scheduler_file.parse(json.dumps(file), origin="config.json", folder=Path("/etc/hansa"))


def test_the_file_of_the_seed():
    settings = parsed(SEED)
    assert settings.upper.kubeconfig == Path.home() / "root/kube/config"
    assert {name: source.kubeconfig for name, source in settings.lowers.items()} == {"test": Path("/root/cloud.config")}
    assert settings.election_namespace == "kube-system"


def test_a_profile_may_have_the_plugin_and_paths_are_relative_to_the_file():
    args = {"cluster_configuration": {"a": {"kube_config": "a.config"}, "b": {"kube_config": "b.config"}}}
    file = {"kind": SEED["kind"], "profiles": [{"pluginConfig": [{"name": "multi-scheduler", "args": args}]}]}
    settings = parsed(file)
    assert [source.kubeconfig for source in settings.lowers.values()] == [
        Path("/etc/hansa/a.config"),
        Path("/etc/hansa/b.config"),
    ]
    assert (settings.upper.kubeconfig, settings.election_namespace) == (None, "")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kind": "Config"}, 'kind is "Config", but must be KubeSchedulerConfiguration'),
        ({"pluginConfig": []}, "no lower cluster in pluginConfig[multi-scheduler].args.cluster_configuration"),
        ({"pluginConfig": {}}, "Expected `array`"),
        (
            {"pluginConfig": [{"name": "multi-scheduler", "args": {"cluster_configuration": {"x": {}}}}]},
            "cluster_configuration[x].kube_config is missing",
        ),
    ],
)
def test_what_is_wrong_is_said(changed, message):
    with pytest.raises(InvalidSettings) as error:
        parsed(SEED | changed)
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["a: &a [*a]", "[" * 5000])
def test_a_file_without_an_end_is_refused(text):
    with pytest.raises(InvalidSettings, match="nested too deeply"):
        multi_scheduler_file.parse(text, origin="config.json", folder=Path("/etc/hansa"))


@pytest.mark.parametrize(
    ("address", "message"), [("0.0.0.0", "is not a loopback address"), ("localhost", "is not an IP address")]
)
def test_the_extender_listens_on_loopback_only(address, message):
    with pytest.raises(HansaError, match=message):
        server.check_loopback(address)
    server.check_loopback("::1")


def test_kube_scheduler_calls_the_extender_and_has_a_profile_for_volumes_below():
    text = multi_scheduler_settings.scheduler_configuration(parsed(SEED), is_ignorable=True)
    made = yaml.safe_load(text)
    [extender] = made["extenders"]
    assert (extender["urlPrefix"], extender["ignorable"]) == ("http://127.0.0.1:10262", True)
    assert [one["schedulerName"] for one in made["profiles"]] == ["default-scheduler", "volumes-below"]
    below = yaml.safe_load(Path("deploy/tensile/scheduler.yaml").read_text())["profiles"][1]
    assert made["profiles"][1] == below
    assert made["leaderElection"]["leaderElect"] is True


def test_a_second_scheduler_has_a_name_and_a_lease_of_its_own():
    text = multi_scheduler_settings.scheduler_configuration(parsed(SEED), is_ignorable=False, name="league")
    made = yaml.safe_load(text)
    assert made["profiles"][0]["schedulerName"] == "league"
    assert made["leaderElection"]["resourceName"] == "league"
