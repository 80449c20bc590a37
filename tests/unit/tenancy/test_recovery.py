"""A recovery goes on when a server refuses one object; a server that does not answer ends it."""

import asyncio
import types

import pytest

from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.model import keys, stamp
from hansa.tenancy.recovery import Recovery

REFUSALS = [errors.Invalid("no"), errors.Forbidden("no"), errors.Conflict("no"), errors.Gone("no")]


def a_copy(kind, name, namespace="", *, origin):
    metadata = {"name": name, "namespace": namespace, "uid": name, "annotations": {keys.VC_UID: "vc"}}
    return stamp.put(Object.of({"kind": kind, "metadata": metadata}), origin)


COPIES = {
    resources.NAMESPACES: [
        a_copy("Namespace", f"t-{name}", origin=stamp.Origin("old", name, "", name)) for name in ("app", "shop")
    ],
    resources.PODS: [
        a_copy("Pod", name, "t-app", origin=stamp.Origin("old", name, "app", name)) for name in ("web-0", "web-1")
    ],
}


def recover(*, refused, error):
    """Recover with a server that refuses one name."""

    async def pages(resource, *, namespace="", **_):
        yield types.SimpleNamespace(items=[one for one in COPIES.get(resource, ()) if one.namespace == namespace])

    async def answered(_resource, name, *_, **__):
        if name == refused:
            raise error
        return Object.of({"metadata": {"name": name, "uid": f"new-{name}"}})

    super_cluster = types.SimpleNamespace(pages=pages, patch=answered, delete=answered)
    tenant = types.SimpleNamespace(get=answered)
    recovery = Recovery(tenant, "new", "vc", report=lambda _: None, deletes_pods=True)
    return asyncio.run(recovery.run([super_cluster]))


@pytest.mark.parametrize("error", REFUSALS, ids=lambda one: type(one).__name__)
def test_an_object_that_may_not_be_read_fails_alone(error):
    result = recover(refused="app", error=error)
    assert result.failed == ["Namespace app: no"]
    assert result.counts == {("adopted", "Namespace"): 1}


@pytest.mark.parametrize("error", REFUSALS, ids=lambda one: type(one).__name__)
def test_a_pod_that_may_not_be_deleted_fails_alone(error):
    result = recover(refused="web-0", error=error)
    assert result.failed == ["copy of Pod app/web-0: no"]
    assert result.counts == {("deleted", "Pod"): 1, ("adopted", "Namespace"): 2}


def test_a_pod_that_is_gone_is_no_failure():
    result = recover(refused="web-0", error=errors.NotFound("no"))
    assert (result.failed, result.counts["deleted", "Pod"]) == ([], 1)


@pytest.mark.parametrize("refused", ["app", "web-0", "t-app"])
@pytest.mark.parametrize(
    "error", [errors.Unreachable("no"), errors.Throttled("no")], ids=lambda one: type(one).__name__
)
def test_a_server_that_does_not_answer_ends_the_run(refused, error):
    with pytest.raises(type(error)):
        recover(refused=refused, error=error)
