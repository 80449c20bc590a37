"""A claim follows its pod and is bound below; the volume appears above, bound to the claim."""

import json

from eventually import eventually
from league import fresh_name, pod

CLASS = "local-disks"


def storage_class():
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name, node):
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def claim(name):
    resources = {"requests": {"storage": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": CLASS, "resources": resources},
    }


def using(name, claim_name, **spec):
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    return pod(name, volumes=volumes, **spec)


async def test_a_claim_is_bound_below_and_its_volume_appears_above(league, upper_namespace):
    hamburg, kube = league.lowers["hamburg"], league.upper.kubectl
    for member in (league.upper, hamburg):
        await member.kubectl("apply", "-f", "-", stdin=json.dumps(storage_class()))
    disk, node = fresh_name("disk"), (await hamburg.all("nodes"))[0]["metadata"]["name"]
    await hamburg.kubectl("apply", "-f", "-", stdin=json.dumps(volume(disk, node)))
    await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(claim("data")))
    # The stock scheduler above knows no volume yet, so this first pod is bound by hand.
    first = using("first", "data", nodeName="vn-hamburg")
    await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(first))
    await league.phase(upper_namespace, "first")
    below = await hamburg.find("pvc", "data", namespace=upper_namespace)
    assert (below["status"]["phase"], below["spec"]["volumeName"]) == ("Bound", disk)
    assert (await hamburg.find("pod", "first", namespace=upper_namespace))["spec"]["nodeName"] == node

    async def bound():
        above = await league.upper.find("pvc", "data", namespace=upper_namespace)
        assert above["status"].get("phase") == "Bound", above["status"]
        return above

    above = await eventually(bound)
    assert above["spec"]["volumeName"] == disk
    shown = await league.upper.find("pv", disk)
    assert shown["spec"]["claimRef"]["uid"] == above["metadata"]["uid"]
    assert shown["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(using("second", "data")))
    second = await league.phase(upper_namespace, "second")
    assert second["spec"]["nodeName"] == "vn-hamburg"
    await kube("-n", upper_namespace, "delete", "pod", "first", "second")
    await kube("-n", upper_namespace, "delete", "pvc", "data")
    await league.gone(hamburg, "pvc", "data", namespace=upper_namespace)
    await hamburg.kubectl("delete", "pv", disk)
    await league.gone(league.upper, "pv", disk)


async def test_a_claim_outlives_its_pods(league, upper_namespace):
    hamburg, kube = league.lowers["hamburg"], league.upper.kubectl
    for member in (league.upper, hamburg):
        await member.kubectl("apply", "-f", "-", stdin=json.dumps(storage_class()))
    disk, node = fresh_name("disk"), (await hamburg.all("nodes"))[0]["metadata"]["name"]
    await hamburg.kubectl("apply", "-f", "-", stdin=json.dumps(volume(disk, node)))
    await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(claim("data")))
    await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(using("p", "data", nodeName="vn-hamburg")))
    await league.phase(upper_namespace, "p")
    await kube("-n", upper_namespace, "delete", "pod", "p")
    await league.gone(hamburg, "pod", "p", namespace=upper_namespace)
    below = await hamburg.find("pvc", "data", namespace=upper_namespace)
    assert below["spec"]["volumeName"] == disk, "its data is still there"
    await kube("-n", upper_namespace, "delete", "pvc", "data")
    await league.gone(hamburg, "pvc", "data", namespace=upper_namespace)
    await hamburg.kubectl("delete", "pv", disk)
