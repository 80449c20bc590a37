"""What `hansa install` renders, and whose objects it changes."""

import pytest

from hansa.app.installation import ownership, rendering, waiting
from hansa.app.installation.ownership import Refused
from hansa.app.installation.rendering import Installation, Mode
from hansa.kube.objects import Object
from hansa.model import keys

WANTED = Installation(Mode.POOL, "here")


@pytest.mark.parametrize("mode", Mode)
def test_every_object_of_a_mode_is_stamped_in_its_namespace_and_of_a_known_kind(mode):
    for one in Installation(mode, "some-place").objects("registry.example.com/hansa@sha256:0"):
        assert one.labels[keys.INSTALLED] == mode
        assert one.annotations[keys.INSTALLATION] == f"some-place/{mode}"
        assert one.labels["app.kubernetes.io/managed-by"] == "hansa-install"
        assert one.namespace in ("", "some-place", "kube-system", "kube-node-lease")
        assert rendering.resource(one).namespaced is bool(one.namespace)
        assert "placeholder" not in one.to_json().decode()


def found(kind="ClusterRole", labels=None, **annotations):
    metadata = {"name": "vc-manager", "labels": labels or {}, "annotations": annotations}
    return Object.of({"kind": kind, "metadata": metadata})


OURS = {keys.INSTALLED: "pool"}
HELM = {ownership.RELEASE: "hansa", ownership.RELEASE_NAMESPACE: "ops"}


def test_our_own_objects_and_shared_kinds_may_be_changed():
    ownership.check(WANTED, found(labels=OURS, **{keys.INSTALLATION: "here/pool"}), ())
    ownership.check(WANTED, found("CustomResourceDefinition"), ())
    ownership.check(WANTED, found("CustomResourceDefinition", **HELM), ())  # kept by a release that is gone
    ownership.check(WANTED, found("Namespace"), ())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (found(), "was not created by hansa install"),
        (found(labels=OURS, **{keys.INSTALLATION: "there/pool"}), "hansa uninstall --mode pool --namespace there"),
        (found(**HELM), "helm uninstall hansa -n ops"),
        (found("CustomResourceDefinition", **HELM), "helm upgrade"),
    ],
)
def test_objects_of_others_are_refused_with_what_to_do(given, words):
    with pytest.raises(Refused, match=words):
        ownership.check(WANTED, given, {("ops", "hansa")})


def deployment(**status):
    metadata = {"name": "a", "generation": 3}
    return Object.of({"kind": "Deployment", "metadata": metadata, "spec": {"replicas": 2}, "status": {**status}})


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"observedGeneration": 2}, "its controller has not seen it yet"),
        ({"observedGeneration": 3}, "0 of 2 pods are ready"),
        ({"observedGeneration": 3, "readyReplicas": 2, "updatedReplicas": 1, "replicas": 3}, "1 of 2 pods are ready"),
        ({"observedGeneration": 3, "readyReplicas": 2, "updatedReplicas": 2, "replicas": 3}, "2 of 2 pods are ready"),
        ({"observedGeneration": 3, "readyReplicas": 2, "updatedReplicas": 2, "replicas": 2}, ""),
    ],
)
def test_a_rollout_is_waited_for_to_its_end(status, text):
    assert waiting.missing(deployment(**status)) == text


def test_reasons_of_pods_that_do_not_start_are_shown():
    state = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    crashed = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"reason": "Error"}}}
    pod = Object.of({"metadata": {"name": "p"}, "status": {"containerStatuses": [state, crashed]}})
    assert list(waiting.reasons_of(pod)) == ["ImagePullBackOff: no such image", "CrashLoopBackOff", "Error"]
