"""How the kubelet API of a node finds pods: in caches, without servers."""

import pytest

import engine_lab as lab
from hansa.engine.registry import Route
from hansa.kube import resources, watching
from hansa.kube.objects import NamespacedName
from hansa.kubelet import routes
from hansa.kubelet.pods import LinkedPods
from hansa.kubelet.refusal import Refusal
from hansa.model import keys
from hansa.model.pair import Key

PODS = resources.PODS


def place(world, name, node, side=None):
    """A pod on a node, and the copy that the engine would make."""
    world.put(world.upper, PODS, lab.pod(name, node))
    [action] = world.decide(Key("up", PODS, "default", name))[1][-1:]
    world.put(side or world.lower, PODS, action.obj)


def two_nodes(world):
    """Pods `a` on node vn, and `b` on node vn2, whose cluster is another one."""
    other = world.side("low2")
    world.view.attach(Route("up", "low2", nodes=frozenset({"vn2"})), other)
    place(world, "a", "vn")
    place(world, "b", "vn2", other)
    return LinkedPods(lambda: world.view.clusters)


def refusal(pods, node, target):
    with pytest.raises(Refusal) as caught:
        pods.find(node, routes.parse("GET", target))
    return caught.value.status, str(caught.value)


def test_a_pod_is_found_on_its_node_only(play):
    def scene(world):
        pods = two_nodes(world)
        call = routes.parse("GET", "/containerLogs/default/b/main")
        found = pods.find("vn2", call)
        assert (found.cluster, found.name) == ("low2", NamespacedName("default", "b"))
        assert refusal(pods, "vn", "/containerLogs/default/b/main")[0] == 404
        assert refusal(pods, "vn", "/containerLogs/default/nobody/main")[0] == 404
        assert pods.find("vn2", routes.parse("POST", "/portForward/default/b/b-uid")) == found
        assert refusal(pods, "vn2", "/portForward/default/b/a-uid")[0] == 404

    play(scene)


def test_a_lower_pod_without_the_stamp_of_the_upper_one_is_not_found(play):
    def scene(world):
        pods = two_nodes(world)
        store = world.lower.stores[PODS]
        copy = store.get(NamespacedName("default", "a"))
        former = {**copy.annotations, keys.UPPER_UID: "of-a-former-life"}
        for number, change in enumerate(({"annotations": former}, {"labels": {}})):
            store.apply(watching.Modified(copy.with_metadata(resource_version=f"9{number}", **change)))
            status, sentence = refusal(pods, "vn", "/containerLogs/default/a/main")
            assert (status, "not created in cluster low yet" in sentence) == (400, True)
            assert list(pods.below("vn").pairs) == []

    play(scene)


def test_an_unreachable_cluster_is_named(play):
    def scene(world):
        pods = two_nodes(world)
        store = world.lower.stores[PODS]
        store.apply(watching.Deleted(store.get(NamespacedName("default", "a"))))
        world.lower.cluster.health.error = "it does not answer"
        world.lower.refresh()
        status, sentence = refusal(pods, "vn", "/containerLogs/default/a/main")
        assert (status, "cluster low: it does not answer" in sentence) == (503, True)

    play(scene)


def test_the_pods_of_a_node_are_its_own(play):
    def scene(world):
        pods = two_nodes(world)
        place(world, "c", "vn")
        assert [pod.name for pod in pods.on("vn") if pod] == ["a", "c"]
        assert [pod.name for pod in pods.on("vn2") if pod] == ["b"]
        below = pods.below("vn")
        assert [(upper.name, lower.name) for upper, lower in below.pairs] == [("a", "a"), ("c", "c")]
        assert pods.below("vn3") is None

    play(scene)


def test_before_the_first_lists_nothing_is_found():
    pods = LinkedPods(lambda: None)
    assert refusal(pods, "vn", "/containerLogs/default/a/main")[0] == 503
    assert (list(pods.on("vn")), pods.below("vn")) == ([], None)
