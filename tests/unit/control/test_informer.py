import pytest

from hansa.control import informer
from hansa.kube import objects, resources
from hansa.runtime import errors


def pod(namespace="ns", labels=None, node=""):
    metadata = {"name": "a", "namespace": namespace, "labels": labels or {}}
    return objects.Object.of({"metadata": metadata, "spec": {"nodeName": node}})


@pytest.mark.parametrize(
    ("scope", "matches"),
    [
        ({}, True),
        ({"namespace": "ns"}, True),
        ({"namespace": "other"}, False),
        ({"labels": "app=web"}, True),
        ({"labels": "app!=web"}, False),
        ({"fields": "spec.nodeName=n1"}, True),
        ({"fields": "spec.nodeName=n2"}, False),
    ],
)
def test_a_scope_matches_the_objects_that_the_server_would_select(scope, matches):
    assert informer.Scope(resources.PODS, **scope).matches(pod(labels={"app": "web"}, node="n1")) is matches


def test_a_selector_that_cannot_be_read_is_refused_at_once():
    with pytest.raises(errors.HansaError):
        informer.Scope(resources.PODS, labels="a in b")


def test_scopes_are_equal_by_what_they_watch_and_say_it():
    one = informer.Scope(resources.PODS, namespace="ns", labels="a=b")
    assert one == informer.Scope(resources.PODS, namespace="ns", labels="a=b")
    assert len({one, informer.Scope(resources.PODS), informer.Scope(resources.PODS)}) == 2
    assert str(one) == "pods in ns a=b"
