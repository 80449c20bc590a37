"""AdmissionReview v1: a question of the API server and our answer to it. Pure: what to change is given."""

import base64
from collections.abc import Callable
from typing import Any

import msgspec

from hansa.admission import json_patch
from hansa.runtime import errors

API_VERSION = "admission.k8s.io/v1"
Mutate = Callable[[dict[str, Any], str], dict[str, Any]]  # an object and its namespace; the object as it should be


class NoReview(errors.HansaError):
    """What was sent is not an AdmissionReview that we can answer."""


class _Kind(msgspec.Struct, frozen=True):
    kind: str = ""


class _Request(msgspec.Struct, frozen=True):
    uid: str
    kind: _Kind = _Kind()
    namespace: str = ""
    operation: str = ""
    object: dict[str, Any] | None = None


class _Review(msgspec.Struct, frozen=True, rename={"api_version": "apiVersion"}):
    api_version: str
    request: _Request


def answer(review: bytes, mutate: Mutate, *, kind: str) -> bytes:
    """The answer: the change to an object of that kind that is being created, or why it is refused."""
    try:
        question = msgspec.json.decode(review, type=_Review)
    except msgspec.DecodeError as error:
        raise NoReview(f"this is not an AdmissionReview: {error}") from None
    if question.api_version != API_VERSION:
        raise NoReview(f"this is a review of {question.api_version}, but only {API_VERSION} is spoken here")
    response = {"uid": question.request.uid, **_verdict(question.request, mutate, kind)}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def _verdict(request: _Request, mutate: Mutate, kind: str) -> dict[str, Any]:
    if request.kind.kind != kind or request.operation != "CREATE" or request.object is None:
        return {"allowed": True}  # a configuration by hand may ask more than we have to say
    try:
        wanted = mutate(request.object, request.namespace)
    except errors.HansaError as error:
        return {"allowed": False, "status": {"code": 422, "reason": "Invalid", "message": str(error)}}
    patch = list(json_patch.between(request.object, wanted))
    if not patch:
        return {"allowed": True}
    encoded = base64.b64encode(msgspec.json.encode(patch)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}
