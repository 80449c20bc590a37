"""The annotations of elected pods, scheduling gates, and what the webhook refuses."""

import yaml

from eventually import eventually
from federation import a_deployment, elected
from hansa.model import keys
from league import PATIENCE, condition

TARGET = "multicluster.admiralty.io/target-name"


def selecting(target):
    """An annotation that chooses the target of a pod by the label of its virtual node."""
    return {keys.PROXY_CONSTRAINTS: f"nodeSelector: {{{TARGET}: {target}}}"}


async def delegate_of(pods, member, name):
    """Wait for the delegate of a pod in a cluster; it."""

    async def look():
        found = await member.all("pods", namespace=pods.namespace, labels=keys.PARENT_UID)
        named = [one for one in found if one["metadata"]["annotations"][keys.PARENT_NAME] == name]
        assert len(named) == 1, (name, [one["metadata"]["name"] for one in found])
        return named[0]

    return await eventually(look, within=PATIENCE)


async def test_annotations_choose_the_target_and_the_labels_of_delegates(federation, namespace, nodes, pods):
    own = {"nodeSelector": {TARGET: "east"}, "annotations": {keys.USE_CONSTRAINTS: ""}}
    kept = elected("kept", annotations={**selecting("west"), keys.NO_PREFIX: "^team="})
    kept["metadata"]["labels"] |= {"team": "red", "app.kubernetes.io/part-of": "shop"}
    await pods.apply(elected("given", annotations=selecting("west")), elected("moved", **own), kept)
    await pods.running("given", nodes["west"])
    await pods.running("moved", nodes["east"])
    await pods.running("kept", nodes["west"])
    moved = await delegate_of(pods, pods.east, "moved")
    assert "nodeSelector" not in moved["spec"]
    labels = (await delegate_of(pods, pods.west, "kept"))["metadata"]["labels"]
    assert (labels["team"], labels["multicluster.admiralty.io/part-of"]) == ("red", "shop")
    assert "app" not in labels


async def test_a_gated_pod_waits_and_one_without_reservation_is_tried_anyway(federation, namespace, nodes, pods):
    gated = elected("gated", schedulingGates=[{"name": "example.com/queue"}])
    await pods.apply(gated, elected("big", cpu="99", annotations={keys.NO_RESERVATION: ""}))
    # Its reasons are those of the targets' schedulers, which got its delegate.
    await pods.event("big", *(f"{node}: " for node in nodes.values()), "0/")
    assert sum(await pods.counts()) == 1, "only the delegate of the pod without reservation"
    proxy = await pods.east.find("pod", "gated", namespace=namespace)
    assert condition(proxy, "PodScheduled")["reason"] == "SchedulingGated"
    gates = '{"spec": {"schedulingGates": null}}'
    await pods.east.kubectl("-n", namespace, "patch", "pod", "gated", "--type=merge", "-p", gates)
    await pods.running("gated")
    await pods.delete("pod", "big", "gated")
    await pods.have_counts(0, 0)


async def test_what_cannot_be_read_is_refused_and_other_pods_are_untouched(federation, namespace, nodes, pods):
    for annotations, text in (
        ({keys.PROXY_CONSTRAINTS: "containers: []"}, keys.PROXY_CONSTRAINTS),
        ({keys.NO_PREFIX: "(a+)+"}, keys.NO_PREFIX),
    ):
        bad = yaml.safe_dump(elected("bad", annotations=annotations))
        code, _, error = await pods.east.kubectl.run("-n", namespace, "create", "-f", "-", stdin=bad.encode())
        assert code
        assert text in error.decode()
    plain = elected("plain")
    plain["metadata"]["annotations"] = {}
    await pods.apply(plain)
    found = await pods.running("plain")
    assert found["spec"]["schedulerName"] == "default-scheduler"
    assert "finalizers" not in found["metadata"]
    await pods.east.kubectl("-n", namespace, "label", "namespace", namespace, "multicluster-scheduler-")
    await pods.apply(elected("unlabelled"))
    assert "finalizers" not in (await pods.running("unlabelled"))["metadata"]


async def test_a_target_refuses_what_its_administrator_does_not_allow(federation, namespace, nodes, pods):
    strict = "pod-security.kubernetes.io/enforce=restricted"
    await pods.west.kubectl("label", "namespace", namespace, strict)
    await pods.apply(elected("guest", annotations=selecting("west")))
    await pods.event("guest", "violates PodSecurity", nodes["west"])
    proxy = await pods.east.find("pod", "guest", namespace=namespace)
    assert "violates PodSecurity" in condition(proxy, "PodScheduled")["message"]
    await pods.apply(a_deployment("anywhere", 2))
    await pods.rolled_out("anywhere")
    assert await pods.counts() == [2, 0]
    await pods.west.kubectl("label", "namespace", namespace, strict.partition("=")[0] + "-")
    await pods.running("guest", nodes["west"])
