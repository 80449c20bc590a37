"""A mode with candidates, lower names by uid, a finalizer, a link to the own cluster, and credentials of a namespace.

No mode in use has all of these yet; the engine promises them to the next one.
"""

import asyncio
import contextlib
from dataclasses import replace

import pytest
import yaml

import engine_lab as lab
from eventually import eventually
from hansa.engine.registry import Route
from hansa.kube import errors, resources, watching
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.model.mode import Mode
from hansa.model.pair import Grade
from programs import Kubectl

PODS, SERVICES = resources.PODS, resources.SERVICES
CANDIDATES, CHOSEN, GRADE = "test.hansa.dev/candidates", "test.hansa.dev/chosen", "test.hansa.dev/grade"
FINALIZER = "test.hansa.dev/guest"


def placed(upper, _key, context):
    """Where the annotations say."""
    candidates = [name for name in upper.annotations.get(CANDIDATES, "").split(",") if name in context.lowers]
    chosen = upper.annotations.get(CHOSEN)
    return dict.fromkeys(candidates, Grade.CANDIDATE) | ({chosen: Grade.CHOSEN} if chosen in context.lowers else {})


def graded(pod, link):
    """A step that sees the grade."""
    return pod.with_metadata(labels={**pod.labels, GRADE: link.grade.name.lower()})


def lower_scheduler(pod, link):
    """Only `low1` has nodes with a kubelet."""
    return pod.with_fields(spec={**pod.spec, "schedulerName": "none" if link.lower == "self" else "default-scheduler"})


def named(key, uid, _link):
    return NamespacedName(key.namespace, f"{key.name}-{uid[:8]}" if key.resource == PODS else key.name)


GUESTS = Mode(
    name="guests",
    lower_name=named,
    rules={
        **lab.SMALL.rules,
        PODS: replace(
            lab.SMALL.rules[PODS],
            placement=placed,
            down=(lab.bare_pod, lower_scheduler, graded),
            lifecycle=replace(lab.SMALL.rules[PODS].lifecycle, finalizer=FINALIZER),
        ),
    },
)


def guest(name, namespace, candidates, config_map="", **annotations):
    """An upper pod that no scheduler binds."""
    metadata = {"namespace": namespace, "annotations": {CANDIDATES: candidates, **annotations}}
    pod = lab.pod(name, "", config_map=config_map, **metadata)
    return pod.with_fields(spec={**pod.spec, "nodeName": None, "schedulerName": "none"})


@pytest.fixture
def start_guests(league):
    """Starts engines that link `up` to `low1`, and to itself as `self`."""

    @contextlib.asynccontextmanager
    async def start():
        async with contextlib.AsyncExitStack() as stack:
            names = {"up": "up", "low1": "low1", "self": "up"}
            clients = {
                name: await stack.enter_async_context(league[cluster].client("hansa-engine"))
                for name, cluster in names.items()
            }
            engine = await stack.enter_async_context(lab.Engine(mode=GUESTS))
            for name, client in clients.items():
                engine.join(name, client)
            for lower in ("low1", "self"):
                engine.registry.link(Route("up", lower, is_self=lower == "self"))
            yield engine

    return start


@pytest.fixture
async def guests(start_guests):
    """An engine that runs during the test."""
    async with start_guests() as engine:
        yield engine


@pytest.fixture
async def shared_home(clients, home):
    """A namespace that both clusters have: the mode creates none."""
    await clients["low1"].create(resources.NAMESPACES, lab.namespace(home))
    yield home
    with contextlib.suppress(errors.NotFound):
        await clients["low1"].delete(resources.NAMESPACES, home)


async def test_candidates_are_tried_in_all_clusters_and_only_the_chosen_one_stays(guests, clients, see, shared_home):
    upper = await clients["up"].create(PODS, guest("web", shared_home, "low1,self"))
    lower = f"web-{upper.uid[:8]}"
    for cluster in ("low1", "up"):
        copy = await eventually(see[cluster].has(PODS, lower, shared_home))
        assert copy.labels[GRADE] == "candidate"
        assert copy.annotations[keys.UPPER_UID] == upper.uid
    held = await see["up"].find(PODS, "web", shared_home)
    assert FINALIZER in held.metadata.finalizers

    await clients["up"].patch(PODS, "web", {"metadata": {"annotations": {CHOSEN: "low1"}}}, namespace=shared_home)
    await eventually(see["low1"].has(PODS, lower, shared_home, lambda one: one.labels[GRADE] == "chosen"))
    await eventually(see["up"].lacks(PODS, lower, shared_home))
    await eventually(see["up"].has(PODS, "web", shared_home, lambda one: one.status.get("phase") == "Running"))

    await clients["up"].delete(PODS, "web", namespace=shared_home, grace=1)
    await eventually(see["up"].lacks(PODS, "web", shared_home))
    assert await see["low1"].find(PODS, lower, shared_home) is None, "the finalizer held the upper pod until then"


async def test_copies_in_the_own_cluster_are_not_copied_again(guests, clients, see, shared_home):
    upper = await clients["up"].create(PODS, guest("web", shared_home, "self"))
    copy = await eventually(see["up"].has(PODS, f"web-{upper.uid[:8]}", shared_home))
    assert copy.annotations[CANDIDATES] == "self", "it would be placed, if it were an upper object"
    await clients["up"].create(PODS, guest("second", shared_home, "self"))
    await eventually(lambda: count(clients["up"], shared_home, 4))
    await clients["up"].delete(PODS, "web", namespace=shared_home, grace=0)
    await eventually(see["up"].lacks(PODS, "web", shared_home))
    await eventually(lambda: count(clients["up"], shared_home, 2))


async def count(client, namespace, expected):
    page = await client.list(PODS, namespace=namespace)
    return len(page.items) == expected


async def test_the_copy_of_a_former_pod_is_deleted_before_that_of_the_next_one_is_created(
    start_guests, clients, see, shared_home
):
    up, released = clients["up"], {"metadata": {"finalizers": None}}
    async with start_guests():
        first = await up.create(PODS, guest("web", shared_home, "low1", **{CHOSEN: "low1"}))
        await eventually(see["low1"].has(PODS, f"web-{first.uid[:8]}", shared_home))
    # Another pod has the name before the engine runs again.
    await up.patch(PODS, "web", released, namespace=shared_home)
    await up.delete(PODS, "web", namespace=shared_home, grace=0)
    second = await up.create(PODS, guest("web", shared_home, "low1", **{CHOSEN: "low1"}))
    seen = []
    changes = watching.watch(clients["low1"], PODS, namespace=shared_home)
    async with start_guests(), contextlib.aclosing(changes), asyncio.timeout(60):
        async for change in changes:
            if isinstance(change, watching.Added | watching.Deleted):
                seen.append((type(change), change.obj.name))
            if seen and seen[-1] == (watching.Added, f"web-{second.uid[:8]}"):
                break
    assert (watching.Deleted, f"web-{first.uid[:8]}") in seen


ACCESS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: guest}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: guest}
rules:
- {apiGroups: [""], resources: [pods], verbs: ["*"]}
- {apiGroups: [""], resources: [events], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: guest}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: guest}
subjects: [{kind: ServiceAccount, name: guest, namespace: NAMESPACE}]
"""


@pytest.fixture
async def narrow(league, kubectl, shared_home, tmp_path):
    """A client of `low1` that may read and write pods of one namespace, and nothing else."""
    low1 = Kubectl(kubectl, league["low1"].kubeconfig)
    await low1("-n", shared_home, "apply", "-f", "-", stdin=ACCESS.replace("NAMESPACE", shared_home))
    config = yaml.safe_load(league["low1"].kubeconfig.read_text())
    config["users"][0]["user"] = {"token": (await low1("-n", shared_home, "create", "token", "guest")).strip()}
    (tmp_path / "narrow").write_text(yaml.safe_dump(config))
    async with Client(kubeconfig.from_files(tmp_path / "narrow"), user_agent="hansa-narrow") as client:
        yield client


async def test_credentials_for_one_namespace_sync_what_they_may_and_a_forbidden_kind_stops_no_other(
    league, clients, see, shared_home, narrow
):
    async with league["up"].client("hansa-engine") as upper, lab.Engine(mode=GUESTS) as engine:
        engine.join("up", upper)
        engine.join("low1", narrow, namespaces=frozenset({shared_home}))
        engine.registry.link(Route("up", "low1"))
        await clients["up"].create(SERVICES, service("web", shared_home))
        made = await clients["up"].create(PODS, guest("web", shared_home, "low1", **{CHOSEN: "low1"}))
        await eventually(see["low1"].has(PODS, f"web-{made.uid[:8]}", shared_home))
        await eventually(see["up"].has(PODS, "web", shared_home, lambda one: one.status.get("phase") == "Running"))
        await eventually(see["up"].event("web", shared_home, "Scheduled"))
        assert await see["low1"].find(SERVICES, "web", shared_home) is None
        await clients["up"].create(resources.CONFIG_MAPS, lab.config_map("greeting", namespace=shared_home))
        reading = guest("reader", shared_home, "low1", config_map="greeting", **{CHOSEN: "low1"})
        reader = await clients["up"].create(PODS, reading)
        event = await eventually(see["up"].event("reader", shared_home, "Refused"))
        assert "may not read configmaps (403); grant them get, list, watch" in event.get("message")

        rule = {"apiGroups": [""], "resources": ["services", "pods", "configmaps", "events"], "verbs": ["*"]}
        await clients["low1"].patch(resources.ROLES, "guest", {"rules": [rule]}, namespace=shared_home)
        await eventually(see["low1"].has(SERVICES, "web", shared_home), within=90)
        await eventually(see["low1"].has(PODS, f"reader-{reader.uid[:8]}", shared_home), within=90)
        for name in ("web", "reader"):
            await clients["up"].delete(PODS, name, namespace=shared_home, grace=0)
            await eventually(see["up"].lacks(PODS, name, shared_home))


def service(name, namespace):
    metadata = {"name": name, "namespace": namespace}
    return Object.of({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}})
