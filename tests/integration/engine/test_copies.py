"""Objects on both sides of an engine, on one upper and two lower clusters."""

import engine_lab as lab
from eventually import eventually
from hansa.engine.registry import Route
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.model import keys

PODS, CONFIG_MAPS, SERVICES = resources.PODS, resources.CONFIG_MAPS, resources.SERVICES


def is_running(pod):
    return pod.status.get("phase") == "Running"


async def test_a_pod_runs_in_the_lower_cluster_and_its_status_is_synced_up(engine, clients, see, home):
    await clients["up"].create(PODS, lab.pod("web", "vn1", namespace=home, labels={"app": "web"}))

    upper = await eventually(see["up"].has(PODS, "web", home, is_running))
    lower = await eventually(see["low1"].has(PODS, "web", home))
    assert upper.status["podIP"] == lower.status["podIP"]
    assert upper.annotations[keys.LOWER_UID] == lower.uid
    assert lower.annotations[keys.UPPER_UID] == upper.uid
    assert lower.labels["app"] == "web"
    assert lower.spec["nodeName"].startswith("low1-")
    assert await see["low2"].find(PODS, "web", home) is None
    namespace = await clients["low1"].get(resources.NAMESPACES, home)
    assert namespace.labels[keys.UPPER] == lower.labels[keys.UPPER]


async def test_referenced_objects_are_created_before_the_pod_updated_and_deleted_with_the_last_pod(
    engine, clients, see, home
):
    up, low = clients["up"], see["low1"]
    await up.create(CONFIG_MAPS, lab.config_map("settings", namespace=home))
    for name in ("one", "two"):
        await up.create(PODS, lab.pod(name, "vn1", namespace=home, config_map="settings"))
    one = await eventually(low.has(PODS, "one", home))
    await eventually(low.has(PODS, "two", home))
    copy = await low.find(CONFIG_MAPS, "settings", home)
    assert int(copy.version) < int(one.version)
    assert await see["low2"].find(CONFIG_MAPS, "settings", home) is None

    await up.patch(CONFIG_MAPS, "settings", {"data": {"a": "2", "b": "3"}}, namespace=home)
    await eventually(low.has(CONFIG_MAPS, "settings", home, lambda o: o.get("data") == {"a": "2", "b": "3"}))

    await up.delete(PODS, "one", namespace=home, grace=1)
    await eventually(see["up"].lacks(PODS, "one", home))
    assert await low.find(CONFIG_MAPS, "settings", home)
    await up.delete(PODS, "two", namespace=home, grace=1)
    await eventually(low.lacks(CONFIG_MAPS, "settings", home))
    assert await see["up"].find(CONFIG_MAPS, "settings", home)


async def test_a_pod_waits_for_references_that_exist_in_the_upper_cluster_only(engine, clients, see, home):
    await clients["up"].create(PODS, lab.pod("early", "vn1", namespace=home, config_map="later"))
    await eventually(see["low1"].has(PODS, "early", home))
    await clients["up"].create(CONFIG_MAPS, lab.config_map("later", namespace=home))
    await eventually(see["low1"].has(CONFIG_MAPS, "later", home))


async def test_a_lower_pod_is_deleted_with_the_grace_period_of_the_upper_one_which_is_deleted_then(
    engine, clients, see, home
):
    held = lab.pod("slow", "vn1", namespace=home, finalizers=["hansa.dev/test"])
    await clients["up"].create(PODS, lab.pod("quick", "vn1", namespace=home))
    await clients["up"].create(PODS, held)
    for name in ("quick", "slow"):
        await eventually(see["up"].has(PODS, name, home, is_running))
    # Something below keeps the pod, so that it can be seen leaving.
    await clients["low1"].patch(PODS, "slow", {"metadata": {"finalizers": ["hansa.dev/below"]}}, namespace=home)

    await clients["up"].delete(PODS, "quick", namespace=home, grace=7)
    await clients["up"].delete(PODS, "slow", namespace=home, grace=7)

    await eventually(see["up"].lacks(PODS, "quick", home))
    assert await see["low1"].find(PODS, "quick", home) is None
    leaving = await eventually(see["low1"].has(PODS, "slow", home, lambda o: o.is_deleting))
    assert leaving.metadata.deletion_grace_period_seconds in (
        7,
        0,
    )  # kwok ends it at once: then only its finalizer holds
    assert await see["up"].find(PODS, "slow", home)
    await clients["low1"].patch(PODS, "slow", {"metadata": {"finalizers": None}}, namespace=home)
    await eventually(see["up"].has(PODS, "slow", home, lambda o: o.metadata.deletion_grace_period_seconds == 0))
    await clients["up"].patch(PODS, "slow", {"metadata": {"finalizers": None}}, namespace=home)
    await eventually(see["up"].lacks(PODS, "slow", home))


async def test_a_lost_lower_pod_ends_the_upper_one(engine, clients, see, home):
    await clients["up"].create(PODS, lab.pod("lost", "vn1", namespace=home))
    await eventually(see["up"].has(PODS, "lost", home, is_running))
    await clients["low1"].delete(PODS, "lost", namespace=home, grace=0)
    await eventually(see["up"].lacks(PODS, "lost", home))


async def test_objects_placed_everywhere_are_in_every_lower_cluster(engine, clients, see, home):
    service = {"ports": [{"port": 80}], "selector": {"app": "web"}}
    made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": home}, "spec": service}
    await clients["up"].create(SERVICES, Object.of(made))
    for name in ("low1", "low2"):
        copy = await eventually(see[name].has(SERVICES, "web", home))
        assert "selector" not in copy.spec
    await clients["up"].delete(SERVICES, "web", namespace=home)
    for name in ("low1", "low2"):
        await eventually(see[name].lacks(SERVICES, "web", home))


async def test_a_foreign_object_is_reported_and_never_modified(engine, clients, see, home):
    low = clients["low1"]
    await low.create(
        resources.NAMESPACES, Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}})
    )
    foreign = await low.create(CONFIG_MAPS, lab.config_map("settings", namespace=home, data={"theirs": "1"}))
    await clients["up"].create(CONFIG_MAPS, lab.config_map("settings", namespace=home))
    await clients["up"].create(PODS, lab.pod("web", "vn1", namespace=home, config_map="settings"))

    for name in ("settings", "web"):
        event = await eventually(see["up"].event(name, home, "NameTaken"))
        assert event.get("type") == "Warning"
        assert "configmaps" in event.get("message")
        assert "is not managed by Hansa" in event.get("message")
    assert await see["low1"].find(PODS, "web", home) is None
    assert (await low.get(CONFIG_MAPS, "settings", namespace=home)).version == foreign.version

    await low.delete(CONFIG_MAPS, "settings", namespace=home)
    await eventually(see["low1"].has(PODS, "web", home), within=60)
    await clients["up"].delete(PODS, "web", namespace=home, grace=0)


async def test_a_foreign_pod_of_the_same_name_is_kept_and_the_copy_is_created_after_its_deletion(
    engine, clients, see, home
):
    low = clients["low1"]
    await low.create(
        resources.NAMESPACES, Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}})
    )
    theirs = lab.pod("web", "low1-0", namespace=home)
    foreign = await eventually(lambda: _created(low, theirs))
    await clients["up"].create(PODS, lab.pod("web", "vn1", namespace=home))
    await eventually(see["up"].event("web", home, "NameTaken"))
    assert (await low.get(PODS, "web", namespace=home)).uid == foreign.uid

    await low.delete(PODS, "web", namespace=home, grace=0)
    ours = await eventually(see["low1"].has(PODS, "web", home), within=30)  # before the audit
    assert ours.uid != foreign.uid
    assert ours.labels[keys.UPPER]


async def _created(client, pod):
    """The pod, once its namespace has a service account."""
    try:
        return await client.create(PODS, pod)
    except errors.Forbidden:
        return None


async def test_a_refusal_is_reported_as_an_event_and_retried_when_it_can_succeed(engine, clients, see, home):
    await clients["up"].create(PODS, lab.pod("first", "vn1", namespace=home))
    await eventually(see["low1"].has(PODS, "first", home))
    quota = {"metadata": {"name": "few", "namespace": home}, "spec": {"hard": {"pods": "1"}}}
    await clients["low1"].create(resources.QUOTAS, Object.of({"apiVersion": "v1", "kind": "ResourceQuota", **quota}))
    await eventually(
        see["low1"].has(resources.QUOTAS, "few", home, lambda o: o.status.get("used", {}).get("pods") == "1")
    )

    for number in range(6):
        await clients["up"].create(PODS, lab.pod(f"more-{number}", "vn1", namespace=home))
    for number in range(6):
        event = await eventually(see["up"].event(f"more-{number}", home, "Refused"))
        assert "exceeded quota" in event.get("message")

    await clients["low1"].patch(resources.QUOTAS, "few", {"spec": {"hard": {"pods": "10"}}}, namespace=home)
    for number in range(6):
        await eventually(see["up"].has(PODS, f"more-{number}", home, is_running), within=30)  # before the audit


async def test_two_upper_clusters_share_a_lower_one_without_touching_each_other(
    start_engine, league, clients, see, home
):
    """The second lower cluster is the other upper one."""
    other, low = clients["low2"], see["low1"]
    await other.create(resources.NODES, lab.virtual_node("vn-other"))
    async with (
        start_engine(lowers=["low1"]),
        league["low2"].client("other") as upper,
        league["low1"].client("other") as lower,
        lab.Engine(period=1.0) as engine,
    ):
        engine.join("up", upper)
        engine.join("low1", lower)
        engine.registry.link(Route("up", "low1", nodes=frozenset({"vn-other"})))
        await clients["up"].create(PODS, lab.pod("mine", "vn1", namespace=home))
        await other.create(PODS, lab.pod("theirs", "vn-other", namespace="default"))
        mine = await eventually(low.has(PODS, "mine", home))
        theirs = await eventually(low.has(PODS, "theirs", "default"))
        assert mine.labels[keys.UPPER] != theirs.labels[keys.UPPER]

        await other.delete(PODS, "theirs", namespace="default", grace=0)
        await eventually(low.lacks(PODS, "theirs", "default"))
        assert (await low.find(PODS, "mine", home)).uid == mine.uid
        await clients["up"].delete(PODS, "mine", namespace=home, grace=0)
        await eventually(low.lacks(PODS, "mine", home))
    await other.delete(resources.NODES, "vn-other")
