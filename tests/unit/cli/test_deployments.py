"""The Deployments in deploy/ use flags that the programs have, and service accounts that the files beside them bind."""

import argparse
import importlib
from pathlib import Path

import pytest
import yaml

import hansa

FOLDER = Path(__file__).parents[3] / "deploy" / "virtualcluster"
OBJECTS = [one for path in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]
# Those that elect a leader; the one of vn-agent is in test_vn_agent.py.
DEPLOYMENTS = [one for one in OBJECTS if one["kind"] == "Deployment" and one["metadata"]["name"] != "vn-agent"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda one: one["metadata"]["name"])
def test_a_deployment_runs_a_command_of_ours_as_an_account_that_is_there(deployment):
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    commands = argparse.ArgumentParser().add_subparsers()
    command, *flags = container["args"]
    importlib.import_module(f"hansa.cli.{command.replace('-', '_')}").add_to(commands)
    arguments = commands.choices[command].parse_args(flags)
    assert arguments.leader_elect_namespace == deployment["metadata"]["namespace"]
    assert container["image"] == f"hansa:{hansa.__version__}"
    accounts = {one["metadata"]["name"] for one in OBJECTS if one["kind"] == "ServiceAccount"}
    assert pod["serviceAccountName"] in accounts


def test_every_binding_gives_a_role_that_is_there():
    roles = {(one["kind"], one["metadata"]["name"]) for one in OBJECTS if one["kind"] in ("Role", "ClusterRole")}
    bindings = [one["roleRef"] for one in OBJECTS if one["kind"].endswith("RoleBinding")]
    assert bindings
    assert {(one["kind"], one["name"]) for one in bindings} == roles
