"""The MutatingWebhookConfiguration that tells the API server to ask us, and how to reach and trust us."""

import base64
from dataclasses import dataclass
from typing import Any, Final

from hansa.admission import exemption, serving
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource

RESOURCE: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    kind="MutatingWebhookConfiguration",
    namespaced=False,
)
DEFAULT_NAME: Final = "hansa-cluster-selector"
WEBHOOK: Final = "cluster-selector.hansa.dev"
SECONDS: Final = 5  # an answer takes milliseconds, so who does not answer by then is not there


@dataclass(frozen=True, slots=True)
class Service:
    """A Service of the upper cluster that leads to us."""

    namespace: str
    name: str
    port: int = 443

    @property
    def host(self) -> str:
        """The name that the API server expects in our certificate."""
        return f"{self.name}.{self.namespace}.svc"


Address = Service | str  # a string is a URL


def of(address: Address, *, ca: bytes, failure_policy: str = "Fail", name: str = DEFAULT_NAME) -> Object:
    """The configuration. Without us a pod would be stored as if there were no lower clusters, so it is refused."""
    webhook = {
        "name": WEBHOOK,
        "clientConfig": {**_reached(address), **({"caBundle": base64.b64encode(ca).decode()} if ca else {})},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "Namespaced",
            }
        ],
        **exemption.selectors(),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": failure_policy,
        "reinvocationPolicy": "IfNeeded",  # another webhook may add constraints after us
        "timeoutSeconds": SECONDS,
    }
    head = {"apiVersion": RESOURCE.api_version, "kind": RESOURCE.kind, "metadata": {"name": name}}
    return Object.of({**head, "webhooks": [webhook]})


async def install(client: Client, wanted: Object) -> None:
    """Make the configuration so, whatever was there under its name. A CA that somebody else injected stays."""
    try:
        await client.create(RESOURCE, wanted)
    except errors.AlreadyExists:
        [webhook] = wanted.get("webhooks")
        there = (await client.get(RESOURCE, wanted.name)).get("webhooks") or [{}]
        trusted = {name: ca for name, ca in (there[0].get("clientConfig") or {}).items() if name == "caBundle"}
        reached = {**trusted, **webhook["clientConfig"]}
        await client.patch(RESOURCE, wanted.name, {"webhooks": [{**webhook, "clientConfig": reached}]})


def _reached(address: Address) -> dict[str, Any]:
    if isinstance(address, str):
        return {"url": address}
    return {
        "service": {
            "namespace": address.namespace,
            "name": address.name,
            "port": address.port,
            "path": serving.PATH,
        }
    }
