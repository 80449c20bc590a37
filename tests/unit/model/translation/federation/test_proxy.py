"""The way up: what of a delegate a proxy pod shows, however much there is of it."""

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.federation.pod import proxy
from hansa.model.translation.federation.target_link import TargetLink

NODE = "admiralty-namespace-default-c2"
LINK = Link("east", "west", "id", settings=TargetLink("c2", NODE, namespace="default", source_id="id"))


def a_pod(name, annotations, **status):
    spec = {"nodeName": NODE, "containers": [{"name": "main", "image": "i"}]}
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
    return Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})


def synced(upper, lower):
    [part] = proxy.up_patches(a_pod("p", upper), a_pod("p-1", lower, phase="Succeeded"), LINK)
    return part.patch["status"]["phase"], part.patch["metadata"]["annotations"]


def test_annotations_of_the_delegate_are_those_of_the_proxy_but_for_ours():
    phase, found = synced(
        {keys.ELECT: "", "a": "1"}, {"a": "2", "b": "3", f"{keys.FEDERATION}/x": "", "hansa.dev/y": ""}
    )
    assert phase == "Succeeded"
    assert {key: found[key] for key in found if not key.startswith("hansa.dev/")} == {"a": "2", "b": "3"}


def test_annotations_that_do_not_fit_do_not_hold_up_the_status():
    large = "x" * (proxy.MOST_ANNOTATIONS - 1000)
    phase, found = synced({keys.SOURCE_POD: "m" * 2000}, {"large": large, "small": "1"})
    assert phase == "Succeeded"
    assert "large" not in found
    assert found["small"] == "1"


def test_an_annotation_may_grow_as_far_as_all_fit():
    _, found = synced({"a": "x" * 100_000}, {"a": "y" * 200_000})
    assert found["a"] == "y" * 200_000
