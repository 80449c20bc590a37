"""A pod's references, against a walk over the whole tree that knows nothing but names of fields."""

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import references
from hansa.model.references import Reference, Token

# The names of fields that lead to a reference, wherever in a spec they are, and the field that has the name.
FIELDS: dict[str, tuple[Resource, str]] = {
    "configMap": (resources.CONFIG_MAPS, "name"),
    "configMapKeyRef": (resources.CONFIG_MAPS, "name"),
    "configMapRef": (resources.CONFIG_MAPS, "name"),
    "secretKeyRef": (resources.SECRETS, "name"),
    "secretRef": (resources.SECRETS, "name"),
    "nodePublishSecretRef": (resources.SECRETS, "name"),
    "imagePullSecrets": (resources.SECRETS, "name"),
    "azureFile": (resources.SECRETS, "secretName"),
    "persistentVolumeClaim": (resources.PERSISTENT_VOLUME_CLAIMS, "claimName"),
}
PLUGINS = ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")

NAMES = st.sampled_from(["a", "b", "c"])


def named(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"name": NAMES, **more}, optional={"optional": st.booleans()})


def one_of(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of([st.fixed_dictionaries({name: value}) for name, value in fields.items()])


def several(items: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(items, max_size=3)


TOKENS = st.fixed_dictionaries(
    {"path": NAMES}, optional={"audience": NAMES, "expirationSeconds": st.sampled_from([600, 3607])}
)
SECRET_NAME = {"secretName": NAMES}
WITH_SECRET = st.fixed_dictionaries({}, optional={"secretRef": st.fixed_dictionaries({"name": NAMES})})
VOLUME_SOURCES = one_of(
    emptyDir=st.just({}),
    hostPath=st.just({"path": "/a"}),
    configMap=named(items=st.just([{"key": "name", "path": "b"}])),
    secret=st.fixed_dictionaries(SECRET_NAME, optional={"optional": st.booleans()}),
    azureFile=st.fixed_dictionaries({**SECRET_NAME, "shareName": NAMES}),
    persistentVolumeClaim=st.fixed_dictionaries({"claimName": NAMES}),
    ephemeral=st.just({"volumeClaimTemplate": {"spec": {}}}),
    csi=st.fixed_dictionaries({}, optional={"nodePublishSecretRef": st.fixed_dictionaries({"name": NAMES})}),
    projected=st.fixed_dictionaries(
        {
            "sources": several(
                one_of(
                    configMap=named(), secret=named(), serviceAccountToken=TOKENS, downwardAPI=st.just({"items": []})
                )
            )
        }
    ),
    **dict.fromkeys(PLUGINS, WITH_SECRET),
)
VOLUMES = several(VOLUME_SOURCES).map(lambda some: [{"name": f"v{i}", **one} for i, one in enumerate(some)])
VARIABLES = st.one_of(
    st.just({"name": "plain", "value": "a"}),
    st.fixed_dictionaries(
        {
            "name": NAMES,
            "valueFrom": one_of(
                configMapKeyRef=named(key=NAMES), secretKeyRef=named(key=NAMES), fieldRef=st.just({"fieldPath": "a"})
            ),
        }
    ),
)
CONTAINERS = several(
    st.fixed_dictionaries(
        {"name": NAMES},
        optional={"env": several(VARIABLES), "envFrom": several(one_of(configMapRef=named(), secretRef=named()))},
    )
)
SPECS = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={
        "initContainers": CONTAINERS,
        "ephemeralContainers": CONTAINERS,
        "volumes": VOLUMES,
        "imagePullSecrets": several(st.fixed_dictionaries({"name": NAMES})),
        "serviceAccountName": NAMES,
        "nodeName": NAMES,
    },
)


@settings(deadline=None)
@given(SPECS)
def test_what_is_found_is_what_a_walk_over_the_whole_tree_finds(spec: dict[str, Any]) -> None:
    found = references.of_pod(pod(spec))
    walked = list(walk(spec))
    expected = {
        (resource, name): all(optional for r, n, optional in walked if (r, n) == (resource, name))
        for resource, name, _ in walked
    } | {(resources.SERVICE_ACCOUNTS, spec.get("serviceAccountName", "default")): False}
    assert {(one.resource, one.name): one.is_optional for one in found.objects} == expected
    assert {one.namespace for one in found.objects} == {"shop"}
    assert len(found.objects) == len(expected)
    account = spec.get("serviceAccountName", "default")
    asked = {(one.get("audience", ""), one.get("expirationSeconds", 3600)) for one in tokens(spec)}
    assert set(found.tokens) == {Token("shop", account, *one) for one in asked}
    assert len(found.tokens) == len(asked)


def test_a_pod_without_references_still_needs_the_default_service_account() -> None:
    found = references.of_pod(pod({}))
    assert found == ((Reference(resources.SERVICE_ACCOUNTS, "shop", "default"),), ())


def test_fields_that_are_null_are_as_if_they_were_not_there() -> None:
    empty = {"name": "v", "secret": None, "projected": {"sources": None}}
    spec = {"volumes": [empty], "containers": [{"name": "c", "env": None, "envFrom": None}], "initContainers": None}
    assert len(references.of_pod(pod(spec)).objects) == 1


def pod(spec: dict[str, Any]) -> Object:
    return Object.of({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec})


def walk(value: Any, field: str = "") -> Iterator[tuple[Resource, str, bool]]:
    """Every reference in a tree, by the names of fields only."""
    if isinstance(value, list):
        for one in value:
            yield from walk(one, field)
    elif isinstance(value, dict):
        if field in FIELDS:
            resource, name = FIELDS[field]
            yield resource, value[name], value.get("optional", False) or field == "imagePullSecrets"
        if field == "secret":  # a volume names it otherwise than a source of a projected one
            yield resources.SECRETS, value.get("secretName") or value["name"], value.get("optional", False)
        if "ephemeral" in value:
            yield resources.PERSISTENT_VOLUME_CLAIMS, f"web-{value['name']}", False
        for name, one in value.items():
            yield from walk(one, name)


def tokens(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for one in value:
            yield from tokens(one)
    elif isinstance(value, dict):
        if "serviceAccountToken" in value:
            yield value["serviceAccountToken"]
        for one in value.values():
            yield from tokens(one)


def test_a_pull_secret_that_a_container_reads_as_well_is_no_mere_pull_secret() -> None:
    volumes = [{"name": "v", "secret": {"secretName": "both"}}]
    spec = {"containers": [], "volumes": volumes, "imagePullSecrets": [{"name": "both"}, {"name": "pull"}]}
    found = {one.name: one for one in references.of_pod(pod(spec)).objects}
    assert [(found[name].is_optional, found[name].is_for_pulling) for name in ("both", "pull")] == [
        (False, False),
        (True, True),
    ]
