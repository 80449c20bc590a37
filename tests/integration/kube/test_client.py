"""The client's verbs on a real API server."""

import pytest

from hansa.kube import errors
from hansa.kube.client import Client, PatchType, Propagation
from hansa.kube.credentials import kubeconfig
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.kube.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from hansa.local import Cluster

WIDGETS = Resource("example.com", "v1", "widgets", kind="Widget")
WIDGET_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def config_map(name: str, namespace: str, **data: str) -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": {"app": name}}
    return Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def pod(name: str, namespace: str) -> Object:
    spec = {"containers": [{"name": "main", "image": "example.com/image"}], "terminationGracePeriodSeconds": 0}
    metadata = {"name": name, "namespace": namespace, "labels": {"app": name}}
    return Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


async def test_an_object_is_created_read_updated_and_deleted(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", namespace, x="1"))
    assert (made.uid != "", made.get("data")) == (True, {"x": "1"})
    assert await client.get(CONFIG_MAPS, "a", namespace=namespace) == made
    new = await client.update(CONFIG_MAPS, made.with_fields(data={"x": "2"}))
    assert (new.get("data"), new.version != made.version) == ({"x": "2"}, True)
    await client.delete(CONFIG_MAPS, "a", namespace=namespace)
    with pytest.raises(
        errors.NotFound, match=f'cannot read configmaps {namespace}/a at https://.*: configmaps "a" not'
    ):
        await client.get(CONFIG_MAPS, "a", namespace=namespace)


async def test_whoever_is_slower_gets_a_conflict(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", namespace))
    await client.update(CONFIG_MAPS, made.with_fields(data={"x": "1"}))
    with pytest.raises(errors.Conflict, match="the object has been modified"):
        await client.update(CONFIG_MAPS, made.with_fields(data={"x": "2"}))
    with pytest.raises(errors.AlreadyExists, match='"a" already exists'):
        await client.create(CONFIG_MAPS, made.with_metadata(resource_version=""))


async def test_each_kind_of_patch_is_understood(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("a", namespace, x="1"))
    merged = await client.patch(CONFIG_MAPS, "a", {"data": {"y": "2", "x": None}}, namespace=namespace)
    assert merged.get("data") == {"y": "2"}
    operations = [{"op": "replace", "path": "/data/y", "value": "3"}]
    patched = await client.patch(CONFIG_MAPS, "a", operations, namespace=namespace, patch_type=PatchType.JSON)
    assert patched.get("data") == {"y": "3"}
    await client.create(PODS, pod("p", namespace))
    image = {"spec": {"containers": [{"name": "main", "image": "example.com/other"}]}}
    strategic = await client.patch(PODS, "p", image, namespace=namespace, patch_type=PatchType.STRATEGIC)
    assert [c["image"] for c in strategic.spec["containers"]] == ["example.com/other"]


async def test_a_patch_can_be_bound_to_a_version(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", namespace))
    patch = {"metadata": {"resourceVersion": made.version}, "data": {"x": "1"}}
    await client.patch(CONFIG_MAPS, "a", patch, namespace=namespace)
    with pytest.raises(errors.Conflict):
        await client.patch(CONFIG_MAPS, "a", patch | {"data": {"x": "2"}}, namespace=namespace)


async def test_apply_owns_fields_and_takes_them_only_by_force(client: Client, namespace: str) -> None:
    await client.apply(CONFIG_MAPS, config_map("a", namespace, x="1"), field_manager="first")
    with pytest.raises(errors.Conflict, match='conflict with "first"') as caught:
        await client.apply(CONFIG_MAPS, config_map("a", namespace, x="2"), field_manager="second")
    assert [cause.field for cause in caught.value.causes] == [".data.x"]
    forced = await client.apply(CONFIG_MAPS, config_map("a", namespace, x="2"), field_manager="second", force=True)
    assert forced.get("data") == {"x": "2"}


async def test_a_deletion_is_bound_to_uid_and_version(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", namespace))
    with pytest.raises(errors.Conflict, match="UID in the precondition"):
        await client.delete(CONFIG_MAPS, "a", namespace=namespace, uid="another")
    with pytest.raises(errors.Conflict, match="ResourceVersion in the precondition"):
        await client.delete(CONFIG_MAPS, "a", namespace=namespace, version="1")
    assert await client.delete(CONFIG_MAPS, "a", namespace=namespace, uid=made.uid, version=made.version) is None


async def test_a_deletion_that_waits_for_a_finalizer_shows_the_leaving_object(client: Client, namespace: str) -> None:
    held = config_map("a", namespace).with_metadata(finalizers=["example.com/hold"])
    await client.create(CONFIG_MAPS, held)
    leaving = await client.delete(CONFIG_MAPS, "a", namespace=namespace, propagation=Propagation.BACKGROUND)
    assert leaving is not None
    assert leaving.is_deleting
    await client.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, namespace=namespace)


async def test_a_grace_period_is_passed_on(client: Client, namespace: str) -> None:
    made = await client.create(PODS, pod("p", namespace).with_metadata(finalizers=["example.com/hold"]))
    leaving = await client.delete(PODS, "p", namespace=namespace, uid=made.uid, grace=0)
    assert leaving is not None
    assert leaving.metadata.deletion_grace_period_seconds == 0
    await client.patch(PODS, "p", {"metadata": {"finalizers": None}}, namespace=namespace)


async def test_a_collection_is_deleted_by_selector(client: Client, namespace: str) -> None:
    for name in ("a", "b", "c"):
        await client.create(CONFIG_MAPS, config_map(name, namespace))
    await client.delete_collection(CONFIG_MAPS, namespace=namespace, labels="app in (a, b)")
    page = await client.list(CONFIG_MAPS, namespace=namespace, labels="app")
    assert [obj.name for obj in page.items] == ["c"]


async def test_nothing_is_kept_of_a_dry_run(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", namespace), dry_run=True)
    assert made.uid
    with pytest.raises(errors.NotFound):
        await client.delete(CONFIG_MAPS, "a", namespace=namespace, dry_run=True)


async def test_a_long_list_comes_in_pages_and_says_its_kind(client: Client, namespace: str) -> None:
    for number in range(7):
        await client.create(CONFIG_MAPS, config_map(f"a{number}", namespace))
    pages = [page async for page in client.pages(CONFIG_MAPS, namespace=namespace, labels="app", limit=3)]
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert len({page.version for page in pages}) == 1
    assert {(obj.api_version, obj.kind) for page in pages for obj in page.items} == {("v1", "ConfigMap")}
    one = await client.list(CONFIG_MAPS, namespace=namespace, fields="metadata.name=a3")
    assert [obj.name for obj in one.items] == ["a3"]


async def test_fields_that_nobody_knows_survive_reading_and_writing(client: Client, namespace: str) -> None:
    await client.apply(CUSTOM_RESOURCE_DEFINITIONS, Object.of(WIDGET_DEFINITION), field_manager="test", force=True)
    stream = await client.open(
        CUSTOM_RESOURCE_DEFINITIONS.collection(),
        query={"watch": "1", "fieldSelector": "metadata.name=widgets.example.com", "timeoutSeconds": "30"},
    )
    while b'"type":"Established","status":"True"' not in (await stream.read()).replace(b" ", b""):
        pass
    stream.close()
    plain = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": namespace},
        "strange": [1, {"two": None}],
        "spec": {"deep": {"er": "ü"}},
    }
    made = await client.create(WIDGETS, Object.of(plain))
    again = await client.update(WIDGETS, made.with_metadata(labels={"new": "label"}))
    assert (again.get("strange"), again.spec) == (plain["strange"], plain["spec"])
    with_status = await client.update(WIDGETS, again.with_fields(status={"ok": True}), subresource="status")
    assert with_status.status == {"ok": True}


async def test_subresources_can_be_read_written_and_called(client: Client, namespace: str) -> None:
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": pod("x", "y").spec},
    }
    metadata = {"name": "d", "namespace": namespace}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    await client.create(DEPLOYMENTS, Object.of(deployment))
    scale = await client.get(DEPLOYMENTS, "d", namespace=namespace, subresource="scale")
    assert (scale.kind, scale.spec) == ("Scale", {})
    wish = scale.with_fields(spec={"replicas": 1}).with_metadata(resource_version="")  # its controller writes, too
    scaled = await client.update(DEPLOYMENTS, wish, subresource="scale")
    assert scaled.spec == {"replicas": 1}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": namespace}}
    await client.create(SERVICE_ACCOUNTS, Object.of(account))
    token = await client.call(SERVICE_ACCOUNTS, "robot", "token", body=Object.of(request), namespace=namespace)
    assert token.status["token"].count(".") == 2


async def test_a_refused_eviction_tells_that_it_was_too_early(client: Client, namespace: str) -> None:
    await client.create(PODS, pod("p", namespace))
    budgets = Resource("policy", "v1", "poddisruptionbudgets")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}}
    metadata = {"name": "b", "namespace": namespace}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    await client.create(budgets, Object.of(budget))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}}
    await client.patch(PODS, "p", ready, namespace=namespace, subresource="status")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": namespace}}
    with pytest.raises(errors.Throttled, match="disruption budget") as caught:
        await client.call(PODS, "p", "eviction", body=Object.of(eviction), namespace=namespace)
    assert caught.value.retry_after >= 1


async def test_what_is_wrong_with_an_object_is_told_in_the_server_s_words(client: Client, namespace: str) -> None:
    with pytest.raises(errors.Invalid, match=r"cannot create pods .*: spec.containers: Required value") as caught:
        await client.create(PODS, pod("p", namespace).with_fields(spec={"containers": []}))
    assert [cause.field for cause in caught.value.causes] == ["spec.containers"]
    with pytest.raises(errors.Invalid, match=r"cannot list pods at .*found '=='"):
        await client.list(PODS, labels="a==b==c")


async def test_the_content_of_a_secret_is_not_in_an_error(client: Client, namespace: str) -> None:
    metadata = {"name": "s", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"bad key!": "hush"}}
    with pytest.raises(errors.Invalid, match="bad key!") as caught:
        await client.create(SECRETS, Object.of(secret))
    assert "hush" not in str(caught.value) + repr(caught.value)


async def test_the_server_sees_who_we_are(cluster: Cluster, namespace: str) -> None:
    async with Client(
        kubeconfig.from_files(cluster.kubeconfig), user_agent="hansa-namer/1.0", keep_managed_fields=True
    ) as client:
        made = await client.create(CONFIG_MAPS, config_map("a", namespace, x="1"))
        assert [entry["manager"] for entry in made.to_dict()["metadata"]["managedFields"]] == ["hansa-namer"]
        assert (await client.version()).startswith("v1.")


async def test_a_write_is_not_sent_any_more_when_it_may_not_be(cluster: Cluster, namespace: str) -> None:
    may_send = {"now": True}
    credentials = kubeconfig.from_files(cluster.kubeconfig)
    async with Client(credentials, user_agent="test", may_send=lambda: may_send["now"]) as guarded:
        await guarded.create(CONFIG_MAPS, config_map("guarded", namespace))
        may_send["now"] = False
        with pytest.raises(errors.Unreachable, match="not sent, because this replica may not write any more"):
            await guarded.delete(CONFIG_MAPS, "guarded", namespace=namespace)
        assert (await guarded.get(CONFIG_MAPS, "guarded", namespace=namespace)).name == "guarded"
        may_send["now"] = True
        await guarded.delete(CONFIG_MAPS, "guarded", namespace=namespace)
