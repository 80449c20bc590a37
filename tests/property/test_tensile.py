"""tensile-kube's table on objects of every kind with random content: every copy converges, and follows changes."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansa.kube import resources
from hansa.kube.resource import Resource
from hansa.model import stamp
from hansa.model.pair import Grade, Key
from hansa.modes import tensile
from hansa.modes.tensile_settings import CredentialSource, LowerSettings, TensileSettings, link
from hansa.nodes.settings import NodeSettings
from worlds import HOME, World

NODE = NodeSettings("vn1", "a")
MODE = tensile.mode(TensileSettings(CredentialSource(), (LowerSettings(CredentialSource(), NODE, link(NODE)),)))
NAME = {"namespace": "shop", "name": "web-0"}
WORDS = st.sampled_from(("one", "two", "kube-root-ca.crt", "vn1", ""))
Strategy = st.SearchStrategy[Any]


def maybe(**fields: Strategy) -> Strategy:
    """Some of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def some(of: Strategy) -> Strategy:
    return st.lists(of, max_size=2)


TEXTS = st.dictionaries(st.sampled_from(("p", "q")), WORDS, max_size=2)
NAMED = maybe(name=WORDS, optional=st.booleans())
TOLERATION = maybe(key=WORDS, operator=st.just("Exists"), effect=st.just("NoExecute"), tolerationSeconds=st.just(3))
EXPRESSION = st.fixed_dictionaries({"key": WORDS, "operator": st.sampled_from(("In", "Exists", "odd"))})
TERM = maybe(matchExpressions=some(EXPRESSION), matchFields=some(EXPRESSION))
AFFINITY = maybe(
    nodeAffinity=maybe(requiredDuringSchedulingIgnoredDuringExecution=maybe(nodeSelectorTerms=some(TERM))),
    podAntiAffinity=maybe(preferredDuringSchedulingIgnoredDuringExecution=some(TEXTS)),
)
PARKED = st.sampled_from(("{}", '{"nodeSelector":{"disk":"ssd"}}', '{"tolerations":[{"key":"t"}]}', "no JSON", "[1]"))
CONTAINER = maybe(
    env=some(
        maybe(value=WORDS, valueFrom=maybe(configMapKeyRef=NAMED, secretKeyRef=NAMED)).map(lambda v: v | {"name": "E"})
    ),
    envFrom=some(maybe(configMapRef=NAMED)),
    resources=maybe(requests=st.just({"cpu": "1"}), limits=st.just({"memory": "1Gi"})),
).map(lambda one: one | {"name": "main"})
CONTAINERS = st.tuples(CONTAINER, WORDS).map(lambda pair: [pair[0] | {"image": pair[1]}])
SOURCE = maybe(serviceAccountToken=st.just({"path": "token"}), configMap=NAMED, secret=NAMED)
VOLUME = maybe(projected=maybe(sources=some(SOURCE)), configMap=NAMED, ephemeral=st.just({})).map(
    lambda one: one | {"name": "v"}
)
POD = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={
        "nodeName": WORDS,
        "nodeSelector": TEXTS,
        "affinity": AFFINITY,
        "tolerations": some(TOLERATION),
        "volumes": some(VOLUME),
        "serviceAccountName": WORDS,
        "priorityClassName": WORDS,
        "activeDeadlineSeconds": st.integers(1, 9),
        "readinessGates": st.just([{"conditionType": "open"}]),
    },
)
SERVICE = maybe(
    type=st.sampled_from(("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")),
    clusterIP=st.sampled_from(("None", "10.0.0.1", "")),
    ports=some(maybe(port=st.integers(1, 9), nodePort=st.integers(1, 9))),
    selector=TEXTS,
    ipFamilies=st.just(["IPv4"]),
).filter(lambda spec: spec.get("type") != "ExternalName" or "clusterIP" not in spec)  # the API server refuses both
CLAIM = maybe(
    storageClassName=WORDS,
    volumeName=WORDS,
    resources=maybe(requests=st.sampled_from(({"storage": "1Gi"}, {"storage": "2Gi"}))),
)
KINDS: dict[Resource, Strategy] = {
    resources.PODS: st.fixed_dictionaries({"spec": POD}),
    resources.CONFIG_MAPS: maybe(data=TEXTS, binaryData=TEXTS, immutable=st.booleans()),
    resources.SECRETS: maybe(data=TEXTS, type=WORDS),
    resources.SERVICE_ACCOUNTS: maybe(secrets=some(NAMED), imagePullSecrets=some(NAMED)),
    resources.PERSISTENT_VOLUME_CLAIMS: st.fixed_dictionaries({"spec": CLAIM}),
    resources.SERVICES: st.fixed_dictionaries({"spec": SERVICE}),
    resources.ENDPOINT_SLICES: maybe(endpoints=some(maybe(addresses=some(WORDS), nodeName=WORDS)), ports=some(TEXTS)),
    resources.ROLES: maybe(rules=some(maybe(verbs=some(WORDS)))),
    resources.ROLE_BINDINGS: maybe(subjects=some(maybe(kind=st.just("ServiceAccount"), name=WORDS, namespace=WORDS))),
}


def manifests(resource: Resource) -> Strategy:
    metadata = st.fixed_dictionaries({"labels": TEXTS, "annotations": TEXTS}, optional={"parked": PARKED}).map(_parked)
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return st.tuples(KINDS[resource], metadata).map(lambda both: head | both[0] | {"metadata": both[1]})


def _parked(metadata: dict[str, Any]) -> dict[str, Any]:
    parked = {"clusterSelector": metadata.pop("parked")} if "parked" in metadata else {}
    return NAME | metadata | {"annotations": metadata["annotations"] | parked}


def edited(world: World, manifest: dict[str, Any]) -> None:
    """The user replaces all but the name."""
    [there] = world.home.objects.values()
    metadata = there["metadata"] | {part: manifest["metadata"][part] for part in ("labels", "annotations")}
    kept = {"metadata": metadata} | ({"status": there["status"]} if "status" in there else {})
    [place] = world.home.objects
    world.home.objects[place] = copy.deepcopy(manifest | kept)


def a_world(resource: Resource) -> World:
    world = World(MODE, Key(HOME, resource, **NAME), lowers=("a",), intents={"a": Grade.CHOSEN})
    world.settings = link(NODE)
    return world


@pytest.mark.parametrize("resource", sorted(KINDS, key=str), ids=str)
@settings(max_examples=60)
@given(st.data())
def test_copies_converge_are_updated_and_are_deleted(resource: Resource, data: st.DataObject) -> None:
    world = a_world(resource)
    world.home.create(data.draw(manifests(resource)))
    world.settle(most=4)
    copied = world.lower("a")
    assert copied is not None
    origin = stamp.of(copied)
    assert origin is not None
    assert world.upper is not None
    assert origin.uid == world.upper.uid
    edited(world, data.draw(manifests(resource)))
    world.settle(most=4)
    assert world.lower("a") is not None
    world.home.delete(world.upper, 3)
    world.settle(most=5)
    assert not any(server.objects for server in world.servers.values())


FOLLOWED: dict[Resource, Callable[[dict[str, Any]], Any]] = {
    resources.PODS: lambda pod: [c.get("image") for c in pod["spec"]["containers"]],
    resources.CONFIG_MAPS: lambda obj: (obj.get("data"), obj.get("binaryData")),
    resources.SECRETS: lambda obj: obj.get("data"),
    resources.ROLES: lambda obj: obj.get("rules"),
    resources.ENDPOINT_SLICES: lambda obj: (
        obj.get("ports"),
        [one.get("addresses") for one in obj.get("endpoints") or ()],
    ),
}


@pytest.mark.parametrize("resource", sorted(FOLLOWED, key=str), ids=str)
@settings(max_examples=60)
@given(st.data())
def test_updates_arrive_whole(resource: Resource, data: st.DataObject) -> None:
    world = a_world(resource)
    world.home.create(data.draw(manifests(resource)))
    world.settle(most=4)
    edited(world, data.draw(manifests(resource)))
    world.settle(most=4)
    upper, lower = world.upper, world.lower("a")
    assert upper is not None
    assert lower is not None
    assert FOLLOWED[resource](lower.to_dict()) == FOLLOWED[resource](upper.to_dict())
    assert upper.labels.items() <= lower.labels.items()
