"""Questions of an API server are answered in its own form."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.admission import json_patch, review
from hansa.admission.exemption import is_exempt
from hansa.runtime.errors import HansaError


def question(pod, *, api_version="admission.k8s.io/v1", kind="Pod", operation="CREATE"):
    request = {"uid": "7", "kind": {"kind": kind}, "namespace": "n", "operation": operation, "object": pod}
    return json.dumps({"apiVersion": api_version, "kind": "AdmissionReview", "request": request}).encode()


def ask(pod, mutate, **how):
    answered = json.loads(review.answer(question(pod, **how), mutate, kind="Pod"))
    assert answered["apiVersion"] == "admission.k8s.io/v1"
    assert answered["kind"] == "AdmissionReview"
    assert answered["response"]["uid"] == "7"
    return answered["response"]


def refuse(_pod, _namespace):
    raise HansaError("it has no name")


def test_a_change_is_answered_as_a_json_patch():
    answered = ask({"spec": {"a/b": 1}}, lambda pod, namespace: {"spec": {"a/b": 2, "in": namespace}})
    assert answered["allowed"]
    assert answered["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(answered["patch"])) == [
        {"op": "replace", "path": "/spec/a~1b", "value": 2},
        {"op": "add", "path": "/spec/in", "value": "n"},
    ]


def test_what_needs_no_change_is_allowed_without_a_patch():
    assert ask({"spec": {}}, lambda pod, _: pod) == {"uid": "7", "allowed": True}


def test_a_refusal_says_why():
    answered = ask({"spec": {}}, refuse)
    assert not answered["allowed"]
    assert answered["status"] == {"code": 422, "reason": "Invalid", "message": "it has no name"}


def test_what_is_no_new_pod_is_allowed_as_it_is():
    assert ask({"spec": {}}, refuse, kind="Service") == {"uid": "7", "allowed": True}
    assert ask({"spec": {}}, refuse, operation="UPDATE") == {"uid": "7", "allowed": True}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "not an AdmissionReview"),
        (b'{"apiVersion":"admission.k8s.io/v1"}', "not an AdmissionReview: Object missing required field `request`"),
        (question({}, api_version="admission.k8s.io/v1beta1"), "only admission.k8s.io/v1 is spoken here"),
    ],
)
def test_what_is_no_review_is_told_so(body, sentence):
    with pytest.raises(review.NoReview, match=sentence):
        review.answer(body, refuse, kind="Pod")


@pytest.mark.parametrize(
    ("pod", "namespace", "exempt"),
    [
        ({}, "default", False),
        ({}, "kube-system", True),
        ({"metadata": {"labels": {"hansa.dev/webhook": "off"}}}, "default", True),
        ({"metadata": {"labels": {"hansa.dev/webhook": "on"}}}, "default", False),
        ({"metadata": {"labels": {"create-by-descheduler": "true"}}}, "default", True),
        ({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, "default", True),
    ],
)
def test_system_pods_and_those_that_opted_out_are_left_alone(pod, namespace, exempt):
    assert is_exempt(pod, namespace) is exempt


TREES = st.recursive(
    st.one_of(st.none(), st.integers(), st.lists(st.integers(), max_size=2)),
    lambda inner: st.dictionaries(st.sampled_from(["a", "b/c", "d~e", "f~1"]), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b/c", "d~e", "f~1"]), TREES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_patch_leads_from_one_object_to_the_other(before, after):
    result = json.loads(json.dumps(before))
    for operation in json_patch.between(before, after):
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        place = result
        for part in path:
            place = place[part]
        if operation["op"] == "remove":
            del place[last]
        else:
            assert (last in place) == (operation["op"] == "replace")
            place[last] = operation["value"]
    assert result == after
