"""Random pairs for properties of decisions, and what must be true when nothing is left to do."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import diff, keys, lifecycle, placement
from hansa.model.lifecycle import Lifecycle
from hansa.model.mode import Mode, PatchPart, Rule, patches_of
from hansa.model.pair import Grade, Key, Link, Unknown
from worlds import HOME, LATER, NODE, UPPER_ID, Server, World, status_up

LOWERS = ("a", "b", "c")
WIDGETS, CLAIMS, ACCOUNTS, NAMESPACES, REFUSABLE, BOUND, UNIQUELY_NAMED = (
    Resource("test", "v1", plural)
    for plural in ("widgets", "claims", "accounts", "namespaces", "refusables", "bounds", "uniques")
)
KINDS: Mapping[Resource, Lifecycle] = {
    resources.PODS: lifecycle.POD,
    WIDGETS: lifecycle.COPY,
    CLAIMS: lifecycle.DATA,
    ACCOUNTS: lifecycle.SHARED_COPY,
    NAMESPACES: lifecycle.NAMESPACE,
    REFUSABLE: lifecycle.COPY,  # some of them are refused
    BOUND: lifecycle.POD,  # the upper ones are bound to the nodes of the lower ones
    UNIQUELY_NAMED: replace(lifecycle.POD, finalizer="hansa.dev/test"),  # lower names contain the upper uid
}


def refusal(upper: Object, _link: Link) -> str:
    return "label x=2 is not allowed" if upper.labels.get("x") == "2" else ""


def without_node(upper: Object, _link: Link) -> Object:
    return upper.with_fields(spec={k: v for k, v in upper.spec.items() if k != "nodeName"})


def image_follows(lower: Object, wanted: Object) -> list[PatchPart]:
    patch, image = diff.metadata_patch(lower, wanted), wanted.spec["image"]
    patch |= {"spec": {"image": image}} if lower.spec["image"] != image else {}
    return [PatchPart(patch)] if patch else []


RULES = {
    resource: Rule(resource, down_patches=patches_of("spec"), up_patches=status_up, lifecycle=life)
    for resource, life in KINDS.items()
}
RULES[REFUSABLE] = replace(RULES[REFUSABLE], check=refusal)
RULES[BOUND] = replace(
    RULES[BOUND],
    down=(without_node,),
    down_patches=image_follows,
    bound_node=lambda lower: NODE if "startTime" in lower.status else "",
)
RULES[resources.NODES] = Rule(resources.NODES)


def lower_name(key: Key, uid: str, _link: Link) -> NamespacedName:
    return NamespacedName(key.namespace, f"{key.name}-{uid}" if key.resource == UNIQUELY_NAMED else key.name)


MODE = Mode(name="test", rules=RULES, lower_name=lower_name)
PHASES = st.sampled_from(("Pending", "Running", "Succeeded", "Failed"))
LABELS = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), max_size=2)
SPECS = st.fixed_dictionaries({"image": st.sampled_from(("i1", "i2"))})
NAME = {"namespace": "shop", "name": "web-0"}


def chosen_once(intents: Mapping[str, Grade]) -> dict[str, Grade]:
    """At most one choice, for objects that run once."""
    chosen = [cluster for cluster, grade in sorted(intents.items()) if grade in (Grade.CHOSEN, Grade.KEPT)]
    return {cluster: grade for cluster, grade in intents.items() if cluster not in chosen[1:]}


def intents_of(resource: Resource) -> st.SearchStrategy[dict[str, Grade]]:
    any_intents = st.dictionaries(st.sampled_from(LOWERS), st.sampled_from(Grade), max_size=3)
    return any_intents.map(chosen_once) if KINDS[resource].runs_once else any_intents


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    metadata = {**NAME, "labels": draw(LABELS), "annotations": draw(LABELS)}
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, "spec": draw(SPECS)}


@st.composite
def statuses(draw: st.DrawFn) -> dict[str, Any]:
    phase = draw(PHASES)
    return {"phase": phase} | ({} if phase == "Pending" else {"startTime": LATER})


@st.composite
def deletions(draw: st.DrawFn) -> dict[str, Any]:
    """The metadata of an object that is being deleted, or none."""
    if not draw(st.booleans()):
        return {}
    grace = draw(st.sampled_from((0, 5, 30)))
    # Without a finalizer, what has no time left is gone at once.
    held = {"finalizers": ["somebody/else"]} if grace == 0 or draw(st.booleans()) else {}
    return {"deletionTimestamp": LATER, "deletionGracePeriodSeconds": grace} | held


@st.composite
def lowers(draw: st.DrawFn, upper_uid: str, manifest: dict[str, Any]) -> dict[str, Any] | None:
    """A lower object: none, a copy of this or of a former upper object, or one of the kinds of foreign objects."""
    whose = draw(st.sampled_from(("absent", "ours", "drifted", "former", "foreign", "other upper", "other name")))
    if whose == "absent":
        return None
    content = manifest if whose == "ours" else draw(manifests())
    labels = dict(content["metadata"]["labels"])
    annotations = dict(content["metadata"]["annotations"])
    if whose != "foreign":
        carried = f"{','.join(sorted(labels))};{','.join(sorted(annotations))}"
        name = "shop/other" if whose == "other name" else "shop/web-0"
        uid = "former" if whose == "former" else upper_uid
        labels[keys.UPPER] = "another-id" if whose == "other upper" else UPPER_ID
        annotations |= {keys.UPPER_UID: uid, keys.UPPER_NAME: name, keys.CARRIED: carried}
    metadata = {**NAME, "labels": labels, "annotations": annotations} | draw(deletions())
    return content | {"metadata": metadata, "status": draw(statuses())}


def named(manifest: dict[str, Any], world: World, uid: str) -> dict[str, Any]:
    """The manifest under the name that a copy of the upper object with this uid has."""
    name = lower_name(world.key, uid, world.links["a"]).name
    return manifest | {"metadata": manifest["metadata"] | {"name": name}}


def store(server: Server, manifest: dict[str, Any], uid: str) -> None:
    """Store an object with this uid, without admission."""
    server.create(manifest)
    [obj] = server.objects.values()
    obj["metadata"]["uid"] = uid


@st.composite
def worlds(draw: st.DrawFn) -> World:
    resource = draw(st.sampled_from(tuple(KINDS)))
    world = World(MODE, Key(HOME, resource, **NAME), lowers=LOWERS, intents=draw(intents_of(resource)))
    world.nodes = draw(st.sampled_from((set(), {NODE})))
    manifest = draw(manifests())
    if draw(st.booleans()) or draw(st.booleans()):
        status = draw(statuses())
        has_run = {keys.LOWER_UID: "a-0"} if draw(st.booleans()) else {}
        annotations = manifest["metadata"]["annotations"] | has_run
        metadata = manifest["metadata"] | {"annotations": annotations} | draw(deletions())
        store(world.home, manifest | {"metadata": metadata, "status": status}, "current")
    for cluster in LOWERS:
        if lower := draw(lowers("current", manifest)):
            uid = lower["metadata"]["annotations"].get(keys.UPPER_UID, "current")
            store(world.servers[cluster], named(lower, world, uid), f"{cluster}-0")
    return world


def wanted(world: World) -> dict[str, Grade]:
    """Where copies should be, computed in a second way."""
    assert not isinstance(world.intents, Unknown)
    if world.upper is None or world.upper.is_deleting:
        return {}
    life, uid = KINDS[world.key.resource], world.upper.uid
    there = {c for c, copied in world.copies().items() if copied.annotations[keys.UPPER_UID] == uid}
    is_ending = life.ends_with_lower and life.has_run(world.upper)
    kept = {c for c, g in world.intents.items() if g is Grade.KEPT and (c in there or is_ending)}
    intents = {c: Grade.CHOSEN if c in kept else g for c, g in world.intents.items()}
    is_chosen = Grade.CHOSEN in intents.values()
    return {c: g for c, g in intents.items() if g is Grade.CHOSEN or (g is Grade.CANDIDATE and not is_chosen)}


def is_bound(world: World, copied: Object) -> bool:
    bound_node = MODE.rules[world.key.resource].bound_node
    return bound_node is not None and bool(bound_node(copied))


def check_end(world: World) -> None:
    """What must be true when nothing is left to do."""
    life, upper, copies, places = KINDS[world.key.resource], world.upper, world.copies(), wanted(world)
    is_kept = upper is not None and upper.is_deleting and life.deleted_last
    if upper is not None and (is_kept or MODE.rules[world.key.resource].refusal(upper, world.links["a"])):
        return  # what is there stays as it is
    assert not any(world.leftovers(cluster) for cluster in LOWERS), "a copy of a former object stays"
    if upper is not None and life.finalizer:
        is_held = life.finalizer in upper.metadata.finalizers
        assert is_held or not copies or life.is_finished(upper), "a copy without the finalizer"
        assert not is_held or copies or not upper.is_deleting, "the finalizer stays"
    for cluster, copied in copies.items():
        assert upper is not None, f"an orphan stays in {cluster}"
        assert copied.annotations[keys.UPPER_UID] == upper.uid, f"a copy of a former object stays in {cluster}"
        assert cluster in places or (life.outlives_users and not upper.is_deleting), (
            f"a copy stays in {cluster} unwanted"
        )
        assert not copied.is_deleting
        desired = MODE.desired(upper, world.key, world.links[cluster])
        assert copied.spec == desired.spec
        assert desired.labels.items() <= copied.labels.items()
        assert desired.annotations.items() <= copied.annotations.items()
    if life.runs_once and Grade.CHOSEN in places.values():
        assert len(copies) <= 1, "two copies of one object after a choice"
    if upper is None:
        return
    is_over = life.is_finished(upper)
    missing = places.keys() - copies.keys() - world.foreign()
    assert not missing or is_over, f"no copy in {missing}"
    if life.completes_deletion and upper.is_deleting and world.intents:
        assert upper.metadata.finalizers, "it was not released"
        assert is_over, "the holders of its finalizers see no final phase"
    speaking = sorted(c for c in copies if places.get(c) is Grade.CHOSEN)
    if speaking and is_bound(world, copies[speaking[0]]) and not placement.node_of(upper):
        assert not world.nodes, "it was not bound"
    elif speaking:
        assert upper.status == copies[speaking[0]].status, "its status was not synced up"
