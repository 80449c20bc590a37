"""Resources: the paths of the API."""

import pytest

from hansa.kube.resource import Resource
from hansa.kube.resources import NODES, PODS

WIDGETS = Resource("example.com", "v1beta1", "widgets")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PODS.collection(), "/api/v1/pods"),
        (PODS.collection("a"), "/api/v1/namespaces/a/pods"),
        (PODS.path("p", namespace="a", subresource="status"), "/api/v1/namespaces/a/pods/p/status"),
        (NODES.path("n"), "/api/v1/nodes/n"),
        (WIDGETS.path("w", namespace="a"), "/apis/example.com/v1beta1/namespaces/a/widgets/w"),
        (Resource("rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False).path("system:node"),
         "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode"),
    ],
)  # fmt: skip
def test_paths_are_those_of_the_api(path: str, expected: str) -> None:
    assert path == expected


def test_resources_are_equal_by_their_path() -> None:
    assert Resource("", "v1", "pods") == PODS
    assert str(WIDGETS) == "widgets.example.com"
    assert (WIDGETS.api_version, PODS.api_version) == ("example.com/v1beta1", "v1")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
def test_a_name_never_reaches_another_path(name: str) -> None:
    with pytest.raises(ValueError, match=r"path|name is empty"):
        PODS.path(name, namespace="a")


def test_namespaces_are_given_exactly_where_they_belong() -> None:
    with pytest.raises(ValueError, match="no namespace was given"):
        PODS.path("p")
    with pytest.raises(ValueError, match="is cluster-scoped, but namespace a was given"):
        NODES.collection("a")
