"""The manifests in deploy/: flags that programs have, accounts and roles that are there, pods without privileges."""

import argparse
import importlib
import re
from pathlib import Path

import pytest
import yaml

import hansa

DEPLOY = Path(__file__).parents[3] / "deploy"
FILES = [DEPLOY / "all_in_one.yaml", *sorted(DEPLOY.glob("manifests/*.yaml"))]
OBJECTS = {path.stem: [one for one in yaml.safe_load_all(path.read_text()) if one] for path in FILES}
WORKLOADS = [
    pytest.param(name, one, id=f"{name}-{one['metadata']['name']}")
    for name, objects in OBJECTS.items()
    for one in objects
    if one["kind"] in ("Deployment", "DaemonSet")
]
LEADERLESS = {"vn-agent", "hansa-webhook"}  # all of their replicas serve


def of_kind(name, *kinds):
    return [one for one in OBJECTS[name] if one["kind"] in kinds]


def parsed(container):
    """The arguments of a container of ours, with variables replaced by addresses."""
    command, *flags = [re.sub(r"\$\(\w+_PORT\)", "1", word) for word in container["args"]]
    flags = [re.sub(r"\$\(\w+\)", "10.0.0.1", word) for word in flags]
    commands = argparse.ArgumentParser().add_subparsers()
    importlib.import_module(f"hansa.cli.{command.replace('-', '_')}").add_to(commands)
    return commands.choices[command].parse_args(flags)


@pytest.mark.parametrize(("name", "workload"), WORKLOADS)
def test_a_program_of_ours_runs_as_an_account_that_is_there(name, workload):
    metadata, pod = workload["metadata"], workload["spec"]["template"]["spec"]
    [container] = pod["containers"]
    arguments = parsed(container)
    assert arguments.metrics_addr.endswith(f":{container['readinessProbe']['httpGet']['port']}")
    if metadata["name"] not in LEADERLESS:
        assert arguments.leader_elect_namespace == metadata["namespace"]
    assert container["image"] == f"hansa:{hansa.__version__}"
    assert pod["serviceAccountName"] in {one["metadata"]["name"] for one in of_kind(name, "ServiceAccount")}


@pytest.mark.parametrize(("name", "workload"), WORKLOADS)
def test_a_pod_meets_the_restricted_standard_and_survives_the_loss_of_a_node(name, workload):
    pod = workload["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        rights = container["securityContext"]
        assert (rights["allowPrivilegeEscalation"], rights["readOnlyRootFilesystem"]) == (False, True)
        assert rights["capabilities"] == {"drop": ["ALL"]}
    assert workload["spec"]["replicas"] == 2
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        assert workload["metadata"]["name"] in {one["metadata"]["name"] for one in of_kind(name, kind)}


@pytest.mark.parametrize("name", OBJECTS)
def test_every_binding_gives_a_role_that_is_there_to_an_account_that_is_there(name):
    roles = {(one["kind"], one["metadata"]["name"]) for one in of_kind(name, "Role", "ClusterRole")}
    bindings = of_kind(name, "RoleBinding", "ClusterRoleBinding")
    assert {(one["roleRef"]["kind"], one["roleRef"]["name"]) for one in bindings} == roles
    [namespace] = of_kind(name, "Namespace")
    accounts = {one["metadata"]["name"] for one in of_kind(name, "ServiceAccount")}
    for subject in (subject for one in bindings for subject in one["subjects"]):
        assert (subject["name"] in accounts, subject["namespace"]) == (True, namespace["metadata"]["name"])
