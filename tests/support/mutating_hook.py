"""A mutating webhook that a tenant may have: it changes every object that its rules name, each time in another way."""

import asyncio
import base64
import contextlib
import datetime
import itertools
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from hansa.kube import certificates, errors
from hansa.kube.certificates import Subject
from hansa.kube.resource import Resource
from scripted_server import serving
from tenant_league import Side

WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    kind="MutatingWebhookConfiguration",
    namespaced=False,
)
Patch = list[dict[str, Any]]


@contextlib.asynccontextmanager
async def mutating(
    tenant: Side, name: str, *resources: str, namespace: str, patch: Callable[[dict[str, Any], int], Patch]
) -> AsyncIterator[list[int]]:
    """A webhook for updates in a namespace; `patch` gets the object and a number. Yields how often it was called."""
    calls, numbers, now = [0], itertools.count(), datetime.datetime.now(datetime.UTC)
    ca = certificates.authority("webhook", now)
    pair = certificates.issue(ca, Subject("webhook", names=("127.0.0.1",)), now)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            size = int(head.split("content-length: ")[1].split("\r\n")[0])
            review = json.loads(await reader.readexactly(size))
            calls[0] += 1
            changes = patch(review["request"]["object"], next(numbers))
            answered = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch"}
            answered["patch"] = base64.b64encode(json.dumps(changes).encode()).decode()
            body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answered})
            lines = ("HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}")
            writer.write("\r\n".join([*lines, "", body]).encode())

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(file.name)
    async with serving(answer, tls=context) as port:
        bundle = base64.b64encode(ca.certificate).decode()
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": list(resources), "operations": ["UPDATE"]}
        hook = {
            "name": "mutating.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle},
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        await tenant.make(WEBHOOKS, name, webhooks=[hook])
        try:
            yield calls
        finally:
            with contextlib.suppress(errors.NotFound):
                await tenant.client.delete(WEBHOOKS, name)
