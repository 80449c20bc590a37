"""What proxy pods refer to is in their targets before the delegates, follows edits, and goes with the last delegate."""

import contextlib

from eventually import eventually
from federation import elected
from league import PATIENCE
from programs import Refused


def config(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name, **data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def in_west(name, **spec):
    """An elected pod that can run in west only."""
    return elected(name, nodeSelector={"kubernetes.io/hostname": "west-0"}, **spec)


def using_all(name):
    """A pod that refers to ConfigMaps and Secrets in every way."""
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c-env", "key": "k"}}}]
    env_from = [{"secretRef": {"name": "s-from"}}]
    sources = [{"configMap": {"name": "c-projected"}}, {"secret": {"name": "s-projected"}}]
    volumes = [
        {"name": "c", "configMap": {"name": "c-volume"}},
        {"name": "s", "secret": {"secretName": "s-volume"}},
        {"name": "p", "projected": {"sources": sources}},
    ]
    init = [{"name": "init", "image": "example.com/app:1", "envFrom": env_from}]
    pulling = [{"name": "s-pull"}]
    return in_west(name, container={"env": env}, initContainers=init, volumes=volumes, imagePullSecrets=pulling)


CONFIGS = ("c-env", "c-projected", "c-volume")
SECRETS = ("s-from", "s-projected", "s-volume", "s-pull")
NAMES = [*(("configmap", name) for name in CONFIGS), *(("secret", name) for name in SECRETS)]


async def test_what_a_pod_refers_to_is_there_before_its_delegate_follows_edits_and_goes(
    federation, namespace, nodes, pods
):
    objects = [*(config(name, k="1") for name in CONFIGS), *(secret(name, k="1") for name in SECRETS)]
    await pods.apply(*objects, config("unused"), using_all("p"))
    await pods.running("p", nodes["west"])
    [delegate] = await federation.delegates(pods.west, namespace)
    copies = [await pods.west.find(*one, namespace=namespace) for one in NAMES]
    made = delegate["metadata"]["creationTimestamp"]
    assert [copy["metadata"]["creationTimestamp"] <= made for copy in copies] == [True] * len(NAMES)
    assert await pods.west.find("configmap", "unused", namespace=namespace) is None
    assert await pods.west.find("serviceaccount", "default", namespace=namespace) is not None
    await pods.apply(config("c-env", k="2", more="3"), secret("s-from", k="2"))

    async def changed():
        copy = await pods.west.find("configmap", "c-env", namespace=namespace)
        assert copy["data"] == {"k": "2", "more": "3"}
        return (await pods.west.find("secret", "s-from", namespace=namespace))["data"] == {"k": "Mg=="}

    await eventually(changed, within=PATIENCE)
    await pods.delete("pod", "p")

    async def gone():
        left = [one for one in NAMES if await pods.west.find(*one, namespace=namespace) is not None]
        assert not left, left
        return True

    await eventually(gone, within=PATIENCE)
    for one in NAMES:
        assert await pods.east.find(*one, namespace=namespace) is not None, one


async def test_foreign_objects_of_the_same_name_are_left_alone_and_reported_on_the_proxy(
    federation, namespace, nodes, pods
):
    theirs = config("c", whose="theirs")
    await pods.west.kubectl.apply({**theirs, "metadata": {"name": "c", "namespace": namespace}})
    volumes = [{"name": "c", "configMap": {"name": "c"}}]
    await pods.apply(config("c", whose="ours"), in_west("p", volumes=volumes))
    await pods.event("p", nodes["west"], f"{namespace}/c", "is not managed by Hansa")
    assert (await pods.west.find("configmap", "c", namespace=namespace))["data"] == {"whose": "theirs"}
    assert await federation.delegates(pods.west, namespace) == []
    await pods.west.kubectl("-n", namespace, "delete", "configmap", "c")
    await pods.running("p", nodes["west"])
    assert (await pods.west.find("configmap", "c", namespace=namespace))["data"] == {"whose": "ours"}


async def test_claims_and_service_accounts_follow_by_setting(federation, namespace, nodes, pods):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = in_west("p", volumes=volumes, serviceAccountName="robot")
    await pods.apply(account, claim, pod)
    await pods.event("p", nodes["west"], "robot")
    assert await pods.west.find("pvc", "data", namespace=namespace) is None
    await federation.agents.pop("east").stop()
    await federation.start("east", flags=("--follow-claims", "--follow-service-accounts"))
    try:

        async def followed():
            for kind, name in (("pvc", "data"), ("serviceaccount", "robot")):
                assert await pods.west.find(kind, name, namespace=namespace) is not None, name
            return await federation.delegates(pods.west, namespace)

        await eventually(followed, within=PATIENCE)
        await pods.delete("pod", "p")
        await pods.have_counts(0, 0)

        async def account_is_gone():
            assert await pods.west.find("serviceaccount", "robot", namespace=namespace) is None
            return True

        await eventually(account_is_gone, within=PATIENCE)
        assert await pods.west.find("pvc", "data", namespace=namespace) is not None, "the data of a pod outlives it"
    finally:
        with contextlib.suppress(Refused):
            await pods.east.kubectl("-n", namespace, "delete", "pvc", "data", "--wait=false")
        await federation.agents.pop("east").stop()
