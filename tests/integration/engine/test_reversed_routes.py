"""Reversed routes: volumes that a lower cluster provisions for synced claims appear above, by the same engine."""

import contextlib

import engine_lab as lab
from eventually import eventually
from hansa.engine.syncer import Syncer
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys, lifecycle, placement
from hansa.model.mode import Mode, Rule

CLAIMS, VOLUMES = resources.PERSISTENT_VOLUME_CLAIMS, resources.PERSISTENT_VOLUMES
DOWN = Mode(
    name="claims",
    creates_namespaces=True,
    rules={
        resources.PODS: Rule(
            resources.PODS,
            down=(lab.bare_pod,),
            lifecycle=lifecycle.POD,
            placement=placement.by_node_name,
            references=lambda pod: [
                lab.Key("", CLAIMS, pod.namespace, volume["persistentVolumeClaim"]["claimName"])
                for volume in pod.spec.get("volumes", ())
                if "persistentVolumeClaim" in volume
            ],
        ),
        CLAIMS: Rule(CLAIMS, lifecycle=lifecycle.DATA, placement=placement.with_users),
    },
)


def up(upper_id):
    def volume_of(claim):
        name = claim.spec.get("volumeName")
        return [lab.Key("", VOLUMES, "", name)] if name else []

    def without_uid(volume, _link):
        claim = volume.spec["claimRef"]
        reference = {name: claim[name] for name in ("apiVersion", "kind", "namespace", "name")}
        return volume.with_fields(spec=volume.spec | {"claimRef": reference})

    rules = (
        Rule(CLAIMS, references=volume_of, needed_at=placement.if_stamped(upper_id, placement.everywhere)),
        Rule(VOLUMES, down=(without_uid,), placement=placement.with_users),
    )
    return Mode(name="volumes", rules={rule.resource: rule for rule in rules})


def claim(name, namespace):
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "by-hand",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    metadata = {"name": name, "namespace": namespace}
    return Object.of({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def volume(name):
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "by-hand",
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/tmp/x"},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    return Object.of({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})


async def test_the_volume_of_a_claim_is_synced_up_and_deleted_with_the_claim(start_engine, clients, see, home):
    name = f"volume-{home}"
    async with start_engine(mode=DOWN, lowers=["low1"]) as engine, contextlib.AsyncExitStack() as stack:
        upper_id = await engine.registry.clusters["up"].identify()
        turned = Syncer(up(upper_id), engine.registry.reversed_routes(), **engine.injected())
        engine.supervisor.start("turned", turned.run)
        stack.callback(turned.drain)
        await clients["low1"].create(VOLUMES, volume(name))
        await clients["low1"].create(VOLUMES, volume(f"{name}-other"))
        await clients["up"].create(CLAIMS, claim("data", home))
        user = lab.pod("user", "vn1", namespace=home)
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        await clients["up"].create(resources.PODS, user.with_fields(spec=user.spec | {"volumes": volumes}))

        bound = await eventually(see["up"].has(CLAIMS, "data", home, lambda o: o.status.get("phase") == "Bound"))
        copy = await clients["up"].get(VOLUMES, bound.spec["volumeName"])
        assert copy.labels[keys.UPPER] == await engine.registry.clusters["low1"].identify()
        assert {v.name for v in (await clients["up"].list(VOLUMES)).items} == {copy.name}

        await clients["up"].delete(resources.PODS, "user", namespace=home, grace=0)
        await eventually(see["low1"].lacks(resources.PODS, "user", home))
        assert await see["low1"].find(CLAIMS, "data", home), "data outlives the pods that use it"
        await clients["up"].delete(CLAIMS, "data", namespace=home)
        await eventually(see["low1"].lacks(CLAIMS, "data", home))
    for one in (await clients["low1"].list(VOLUMES)).items:
        await clients["low1"].delete(VOLUMES, one.name)
    for one in (await clients["up"].list(VOLUMES)).items:
        await clients["up"].delete(VOLUMES, one.name)
