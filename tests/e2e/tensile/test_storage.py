"""A claim follows its pod and is bound below; the volume appears above, bound to the claim."""

import asyncio
import contextlib
import json
from pathlib import Path

import yaml

from eventually import eventually
from hansa import local
from hansa.programs import ports
from league import fresh_name
from storage_things import claim, storage_class, using, volume

SCHEDULER = Path(__file__).parents[3] / "deploy" / "tensile" / "scheduler.yaml"


async def test_a_claim_is_bound_in_the_lower_cluster_and_its_volume_is_synced_up(league, upper_namespace):
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


def stamped(name, origin, volume_name, *, upper, uid):
    """A claim of the lower cluster that says it is the copy of an upper one."""
    made = claim(name)
    annotations = {"hansa.dev/upper-uid": uid, "hansa.dev/upper-name": origin}
    made["metadata"] |= {"labels": {"hansa.dev/upper": upper}, "annotations": annotations}
    made["metadata"]["finalizers"] = ["example.com/stays"]  # hansa deletes it, but the lower cluster keeps it
    made["spec"]["volumeName"] = volume_name
    return made


async def test_a_lower_cluster_binds_no_claim_that_was_not_sent_to_it(league, upper_namespace):
    hamburg, kube = league.lowers["hamburg"], league.upper.kubectl
    for member in (league.upper, hamburg):
        await member.kubectl("apply", "-f", "-", stdin=json.dumps(storage_class()))
    node = (await hamburg.all("nodes"))[0]["metadata"]["name"]
    for name in ("data", "coveted"):
        await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(claim(name)))
    await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(using("p", "data", nodeName="vn-hamburg")))
    sent = await league.there(hamburg, "pvc", "data", namespace=upper_namespace)
    upper, uid = sent["metadata"]["labels"]["hansa.dev/upper"], sent["metadata"]["annotations"]["hansa.dev/upper-uid"]
    coveted, foreign, forged = f"{upper_namespace}/coveted", fresh_name("foreign"), fresh_name("forged")
    for disk, copy in (
        # A volume of a claim that the lower cluster does not have, through a claim with a true stamp …
        (foreign, stamped("other", f"{upper_namespace}/data", foreign, upper=upper, uid=uid)),
        # … and one of a claim with a forged stamp: nobody told the lower cluster its uid.
        (forged, stamped("coveted", coveted, forged, upper=upper, uid="0" * 8)),
    ):
        made = volume(disk, node)
        made["spec"]["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": upper_namespace, "name": "coveted"}
        await hamburg.kubectl("apply", "-f", "-", stdin=json.dumps(made))
        await hamburg.kubectl("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(copy))

    async def is_released():
        return (await league.upper.find("pv", forged))["status"].get("phase") == "Released"

    await eventually(is_released, within=60)
    above = await league.upper.find("pvc", "coveted", namespace=upper_namespace)
    assert (above["status"]["phase"], above["spec"].get("volumeName")) == ("Pending", None)
    found = await league.upper.find("pv", foreign)
    assert found is None or found["status"]["phase"] == "Released"
    for copy in ("other", "coveted"):
        await hamburg.kubectl(
            "-n", upper_namespace, "patch", "pvc", copy, "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
        )
    await kube("-n", upper_namespace, "delete", "pod", "p")
    await kube("-n", upper_namespace, "delete", "pvc", "data", "coveted")
    await hamburg.kubectl("-n", upper_namespace, "delete", "pvc", "--all")
    await hamburg.kubectl("delete", "pv", foreign, forged)


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


@contextlib.asynccontextmanager
async def scheduler(cluster, sources, folder):
    """A second kube-scheduler of a cluster, with the profile that deploy/tensile has for claims bound below."""
    binary = (await local.binaries.ensure(["kube-scheduler"], sources=sources))["kube-scheduler"]
    config = yaml.safe_load(SCHEDULER.read_text())
    config["clientConnection"] = {"kubeconfig": str(cluster.kubeconfig)}
    config["leaderElection"] = {"leaderElect": False}
    config["profiles"] = [one for one in config["profiles"] if one["schedulerName"] == "volumes-below"]
    (folder / "scheduler.yaml").write_text(yaml.safe_dump(config))
    [port] = ports.choose(1, taken=(), seed="scheduler")
    flags = [f"--config={folder / 'scheduler.yaml'}", "--bind-address=127.0.0.1", f"--secure-port={port}"]
    with (folder / "scheduler.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(str(binary), *flags, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def test_a_scheduler_that_waits_for_no_volume_keeps_the_pods_of_a_claim_together(
    league, upper_namespace, fleet, tmp_path
):
    """No pod is bound by hand, there is no webhook, and the first two pods come at the same time."""
    kube, storage, mode = league.upper.kubectl, fresh_name("disks"), "ReadWriteMany"
    await kube.apply(storage_class(storage, "hansa.dev/below"))
    disks = []
    for member in league.lowers.values():
        await member.kubectl.apply(storage_class(storage))
        disks.append(fresh_name("disk"))
        node = (await member.all("nodes"))[0]["metadata"]["name"]
        await member.kubectl.apply(volume(disks[-1], node, storage=storage, mode=mode))
    in_namespace = {"namespace": upper_namespace}
    made = [claim("data", storage=storage, mode=mode)]
    made += [using(f"p-{n}", "data", schedulerName="volumes-below") for n in range(4)]
    async with scheduler(league.upper.cluster, fleet.sources, tmp_path):
        await kube.apply(*({**one, "metadata": one["metadata"] | in_namespace} for one in made))
        pods = [await league.phase(upper_namespace, f"p-{n}", within=60) for n in range(4)]
        [place] = {one["spec"]["nodeName"] for one in pods}

        async def bound():
            above = await league.upper.find("pvc", "data", namespace=upper_namespace)
            return above["status"].get("phase") == "Bound" and above["spec"]["volumeName"]

        assert await eventually(bound) in disks
        later = using("later", "data", schedulerName="volumes-below")
        await kube("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(later))
        assert (await league.phase(upper_namespace, "later", within=60))["spec"]["nodeName"] == place
    others = [one for name, one in league.lowers.items() if f"vn-{name}" != place]
    for other in others:
        assert await other.find("pvc", "data", namespace=upper_namespace) is None
    await kube("-n", upper_namespace, "delete", "pod", "--all")
    await kube("-n", upper_namespace, "delete", "pvc", "data")
    for member, disk in zip(league.lowers.values(), disks, strict=True):
        await league.gone(member, "pvc", "data", namespace=upper_namespace)
        await member.kubectl("delete", "pv", disk)
