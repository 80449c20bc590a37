"""Who calls the kubelet API of a node, and whether they may: asked of the API server, as kubelets do.

A caller has a client certificate, which the TLS handshake verified, or a bearer token. Answers are kept for seconds.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.kubelet.answers import Answers
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.rights import Right
from hansa.runtime import clock

LONGEST_TOKEN = 16384
AT_ONCE = 8  # reviews of a kind; anybody can send tokens, and the client is the syncer's, too


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, list[str]] = field(default_factory=dict, hash=False)


class NodeAccess:
    """Authenticates and authorizes callers of the nodes of one cluster."""

    def __init__(self, client: Client, *, clock: clock.Clock) -> None:
        self._client, self._clock = client, clock
        self._tokens, self._rights = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(AT_ONCE)
        self._callers: Answers[bytes, Caller | None] = Answers(clock)
        self._permissions: Answers[tuple[Caller, str, str, str], bool] = Answers(clock)

    async def caller(self, certificate: Mapping[str, Any], authorization: str) -> Caller:
        """The caller of a request; raises a Refusal with status 401 if it is not known."""
        found = _by_certificate(certificate) or await self._by_token(authorization)
        if found is None:
            raise Refusal(401, "Unauthorized")
        return found

    async def check(self, caller: Caller, node: str, right: Right) -> None:
        """Raise a Refusal with status 403 unless the caller has the right, for one of its subresources of the node."""
        for subresource in right.subresources:
            if await self._may(caller, node, right.verb, subresource):
                return
        what = f"verb={right.verb}, resource=nodes, subresource(s)=[{' '.join(right.subresources)}]"
        raise Refusal(403, f"Forbidden (user={caller.user}, {what})")

    async def _may(self, caller: Caller, node: str, verb: str, subresource: str) -> bool:
        key = (caller, node, verb, subresource)
        return await self._permissions.get(key, lambda: self._ask(caller, node, verb=verb, subresource=subresource))

    async def _by_token(self, header: str) -> Caller | None:
        kind, _, token = header.partition(" ")
        if kind.lower() != "bearer" or not 0 < len(token) <= LONGEST_TOKEN:
            return None
        key = hashlib.sha256(token.encode("latin-1")).digest()
        return await self._callers.get(key, lambda: self._ask_for(token.strip()))

    async def _ask_for(self, token: str) -> Caller | None:
        async with self._tokens:
            review = await self._review(resources.TOKEN_REVIEWS, {"token": token})
        return _of_review(review.status.get("user") or {}) if review.status.get("authenticated") else None

    async def _ask(self, caller: Caller, node: str, *, verb: str, subresource: str) -> bool:
        spec = {
            "user": caller.user,
            "groups": list(caller.groups),
            "uid": caller.uid,
            "extra": dict(caller.extra),
            "resourceAttributes": {
                "verb": verb,
                "version": "v1",
                "resource": "nodes",
                "subresource": subresource,
                "name": node,
            },
        }
        async with self._rights:
            review = await self._review(resources.SUBJECT_ACCESS_REVIEWS, spec)
        return bool(review.status.get("allowed"))

    async def _review(self, resource: Resource, spec: Mapping[str, Any]) -> Object:
        asked = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
        try:
            return await self._client.create(resource, Object.of(asked))
        except errors.ApiError as error:
            raise Refusal(503, f"the API server did not answer a {resource.kind}: {error}") from None


def _by_certificate(certificate: Mapping[str, Any]) -> Caller | None:
    """The caller that a verified certificate names: the user is its common name, the groups its organizations."""
    names = [pair for rdn in certificate.get("subject", ()) for pair in rdn]
    user = next((value for name, value in names if name == "commonName"), "")
    groups = tuple(value for name, value in names if name == "organizationName")
    return Caller(user, (*groups, "system:authenticated")) if user else None


def _of_review(user: Mapping[str, Any]) -> Caller | None:
    name = user.get("username", "")
    return Caller(name, tuple(user.get("groups") or ()), user.get("uid", ""), user.get("extra") or {}) if name else None
