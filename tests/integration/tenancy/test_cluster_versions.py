"""The sample ClusterVersions: an API server accepts their objects, and real binaries know each flag."""

from pathlib import Path

import pytest

from hansa import local
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.local import Cluster, Fleet
from hansa.local.machines.command import run
from hansa.tenancy.operator import cluster_versions
from programs import Kubectl

BUNDLES = ("etcd", "apiServer", "controllerManager")
SAMPLES = {sample.name: sample for sample in cluster_versions.samples()}


@pytest.mark.parametrize("name", SAMPLES)
async def test_an_api_server_takes_every_object_of_a_sample_without_a_warning(
    name: str, cluster: Cluster, kubectl: Path, namespace: str
) -> None:
    user = Kubectl(kubectl, cluster.kubeconfig)
    parts = [SAMPLES[name].spec[bundle][part] for bundle in BUNDLES for part in ("statefulset", "service")]
    arguments = ("--server-side", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "-n", namespace)
    output = await user("apply", *arguments, "-f", "-", stdin=_list(parts))
    assert output.splitlines() == [
        "statefulset.apps/etcd serverside-applied (server dry run)",
        "service/etcd serverside-applied (server dry run)",
        "statefulset.apps/apiserver serverside-applied (server dry run)",
        "service/apiserver-svc serverside-applied (server dry run)",
        "statefulset.apps/controller-manager serverside-applied (server dry run)",
        "service/controller-manager-svc serverside-applied (server dry run)",
    ]


@pytest.mark.parametrize("bundle", BUNDLES)
async def test_pods_of_a_sample_need_no_rights_on_their_node(bundle: str, client: Client, namespace: str) -> None:
    enforced = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await client.patch(resources.NAMESPACES, namespace, enforced)
    statefulset = SAMPLES["cv-sample-np"].spec[bundle]["statefulset"]["spec"]
    spec, claims = statefulset["template"]["spec"], statefulset.get("volumeClaimTemplates", ())
    names = (claim["metadata"]["name"] for claim in claims)  # of volumes that the StatefulSet controller adds
    added = [{"name": name, "persistentVolumeClaim": {"claimName": f"{name}-one"}} for name in names]
    spec = spec | {"volumes": [*spec.get("volumes", ()), *added]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec}
    await client.create(resources.PODS, Object.of(pod), namespace=namespace, dry_run=True)


@pytest.mark.parametrize(
    ("bundle", "program"),
    [("etcd", "etcd"), ("apiServer", "kube-apiserver"), ("controllerManager", "kube-controller-manager")],
)
async def test_every_flag_of_a_sample_is_one_of_its_program(bundle: str, program: str, fleet: Fleet) -> None:
    binary = (await local.binaries.ensure([program], sources=fleet.sources))[program]
    known = (await run(str(binary), "--help")).split()
    [container] = SAMPLES["cv-sample-np"].spec[bundle]["statefulset"]["spec"]["template"]["spec"]["containers"]
    assert container["command"] == [program]
    assert [flag for flag in container["args"] if flag.partition("=")[0] not in known] == []


def _list(items: list[dict[str, object]]) -> str:
    return Object.of({"apiVersion": "v1", "kind": "List", "items": items}).to_json().decode()
