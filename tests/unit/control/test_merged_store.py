"""One cache over several namespaces: reads, indexes, listeners and freshness."""

import simulation
from hansa.control.merged_store import MergedStore
from hansa.control.store import Store
from hansa.kube import watching
from hansa.kube.objects import NamespacedName, Object


def config_map(namespace, name, version, **labels):
    metadata = {"namespace": namespace, "name": name, "uid": f"{namespace}-{name}", "resourceVersion": str(version)}
    return Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "labels": labels}})


def by_team(obj):
    return (obj.labels["team"],) if "team" in obj.labels else ()


def play(scene):
    async def main(world):
        stores = {name: Store(f"low {name}", clock=world.clock, metrics=world.metrics) for name in ("a", "b")}
        scene(MergedStore(stores), stores)

    simulation.run(main)


def listed(store, *objects):
    store.apply(watching.Restarted())
    for obj in objects:
        store.apply(watching.Added(obj))
    store.apply(watching.Synced("9"))


def test_objects_of_all_namespaces_are_found_and_those_of_others_are_absent():
    def scene(merged, stores):
        merged.index("team", by_team)
        listed(stores["a"], config_map("a", "one", 1, team="x"))
        listed(stores["b"], config_map("b", "one", 2, team="x"), config_map("b", "two", 3))
        assert sorted(merged) == [("a", "one"), ("b", "one"), ("b", "two")]
        assert len(merged) == 3
        assert [one.namespace for one in merged.find("team", "x")] == ["a", "b"]
        assert merged.get(NamespacedName("b", "two")).uid == "b-two"
        assert merged.get(NamespacedName("c", "one")) is None

    play(scene)


def test_it_is_known_when_all_namespaces_are_and_forbidden_when_one_is():
    def scene(merged, stores):
        notified = []
        merged.freshness.listen(notified.append)
        listed(stores["a"])
        assert (merged.freshness.has_synced, merged.freshness.is_known, notified) == (False, False, [False])
        listed(stores["b"])
        assert (merged.freshness.has_synced, merged.freshness.is_known, notified) == (True, True, [False, True])
        stores["b"].freshness.interrupt("configmaps is forbidden", is_forbidden=True)
        assert merged.freshness.is_forbidden
        assert merged.freshness.error == "configmaps is forbidden"

    play(scene)


def test_listeners_get_changes_of_every_namespace_until_they_end():
    def scene(merged, stores):
        changed = []
        end = merged.listen(changed.append, lambda obj: (obj.key,))
        listed(stores["a"])
        listed(stores["b"])
        stores["b"].apply(watching.Added(config_map("b", "one", 10)))
        end()
        stores["a"].apply(watching.Added(config_map("a", "one", 11)))
        assert changed == [("b", "one")]

    play(scene)


def test_answers_to_our_own_writes_go_to_their_namespace():
    def scene(merged, stores):
        listed(stores["a"])
        listed(stores["b"])
        merged.observe(config_map("a", "one", 10))
        merged.observe(config_map("elsewhere", "one", 10))
        assert list(stores["a"]) == [("a", "one")]
        assert list(merged) == [("a", "one")]
        merged.observe_gone(NamespacedName("a", "one"), "a-one")
        assert list(merged) == []

    play(scene)
