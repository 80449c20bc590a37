"""AdmissionReviews are answered in the format of the API server."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.admission import json_patch, review
from hansa.admission.exemption import is_exempt
from hansa.admission.mutation import Mutation, Refused
from hansa.kube import resources


def body(pod, *, api_version="admission.k8s.io/v1", resource="pods", operation="CREATE", **more):
    request = {
        "uid": "7",
        "resource": {"group": "", "version": "v1", "resource": resource},
        "namespace": "n",
        "operation": operation,
        "object": pod,
        **more,
    }
    return json.dumps({"apiVersion": api_version, "kind": "AdmissionReview", "request": request}).encode()


def response(pod, mutate, **how):
    mutation = Mutation(name="test", resources=(resources.PODS,), mutate=mutate)
    answered = json.loads(review.respond(body(pod, **how), (mutation,), {}))
    assert answered["apiVersion"] == "admission.k8s.io/v1"
    assert answered["kind"] == "AdmissionReview"
    assert answered["response"]["uid"] == "7"
    return answered["response"]


def refuse(_request, _caches):
    raise Refused("spec.x", 1, "set it to 2")


def test_a_change_is_returned_as_a_json_patch():
    answered = response({"spec": {"a/b": 1}}, lambda request, _: {"spec": {"a/b": 2, "in": request.namespace}})
    assert answered["allowed"]
    assert answered["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(answered["patch"])) == [
        {"op": "replace", "path": "/spec/a~1b", "value": 2},
        {"op": "add", "path": "/spec/in", "value": "n"},
    ]


def test_an_unchanged_object_is_allowed_without_a_patch():
    assert response({"spec": {}}, lambda request, _: request.object) == {"uid": "7", "allowed": True}


def test_a_refusal_names_field_value_remedy_and_mutation():
    answered = response({"spec": {}}, refuse)
    assert not answered["allowed"]
    message = "spec.x: Invalid value: 1: set it to 2"
    assert answered["status"] == {"code": 422, "reason": "Invalid", "message": message}
    assert answered["auditAnnotations"] == {"refused-by": "test"}


@pytest.mark.parametrize(
    "how",
    [
        {"resource": "services"},
        {"operation": "UPDATE"},
        {"operation": "CONNECT"},
        {"subResource": "binding"},
        {"operation": "DELETE", "object": None},
    ],
)
def test_a_request_that_no_mutation_applies_to_is_allowed(how):
    assert response({"spec": {}}, refuse, **how) == {"uid": "7", "allowed": True}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not an AdmissionReview"),
        (b'{"apiVersion":"admission.k8s.io/v1"}', "not an AdmissionReview: Object missing required field `request`"),
        (body({}, api_version="admission.k8s.io/v1beta1"), "v1beta1 is not supported; send admission.k8s.io/v1"),
    ],
)
def test_a_body_that_is_no_review_is_refused(body, message):
    with pytest.raises(review.InvalidReview, match=message):
        review.respond(body, (), {})


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
