"""AdmissionReview v1: decodes the API server's request and encodes the response, with one JSON patch.

Used by the webhook's server for each request. Pure: the mutations and the caches they read are given.
"""

import base64
from collections.abc import Iterable
from typing import Any

import msgspec

from hansa.admission import json_patch, mutation
from hansa.admission.mutation import Caches, Mutation, Operation, Refusal
from hansa.kube.resource import Resource
from hansa.runtime import errors

API_VERSION = "admission.k8s.io/v1"


class InvalidReview(errors.HansaError):
    """The request's body is not an AdmissionReview of a supported version."""


class _Resource(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    resource: _Resource = _Resource()
    sub_resource: str = ""
    namespace: str = ""
    operation: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    request: _Request


def respond(body: bytes, mutations: Iterable[Mutation], caches: Caches) -> bytes:
    """The AdmissionReview with the response: allowed, with a patch if the object changes, or refused."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except msgspec.DecodeError as error:
        raise InvalidReview(f"not an AdmissionReview: {error}") from None
    if review.api_version != API_VERSION:
        raise InvalidReview(f"AdmissionReview version {review.api_version} is not supported; send {API_VERSION}")
    response = {"uid": review.request.uid, **_response(review.request, mutations, caches)}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def _response(received: _Request, mutations: Iterable[Mutation], caches: Caches) -> dict[str, Any]:
    request = _request(received)
    if request is None:
        return {"allowed": True}  # a configuration written by hand may send more than any mutation applies to
    result = mutation.mutated(request, mutations, caches)
    if isinstance(result, Refusal):
        status = {"code": 422, "reason": "Invalid", "message": result.message}
        return {"allowed": False, "status": status, "auditAnnotations": {"refused-by": result.mutation}}
    patch = list(json_patch.between(request.object, result))
    if not patch:
        return {"allowed": True}
    encoded = base64.b64encode(msgspec.json.encode(patch)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def _request(received: _Request) -> mutation.Request | None:
    """What mutations see; None if no mutation can apply: a subresource, a DELETE, a CONNECT."""
    if received.sub_resource or received.object is None or received.operation not in Operation.__members__:
        return None
    kind = received.resource
    return mutation.Request(
        Resource(kind.group, kind.version, kind.resource),
        Operation(received.operation),
        received.namespace,
        received.object,
        received.old_object,
    )
