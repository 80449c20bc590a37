"""The MutatingWebhookConfiguration of a list of mutations: what the API server sends, to which address, with which CA.

Built from the mutations when the webhook starts, and written to the upper cluster unless `--no-install` is given.
"""

import base64
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from hansa.admission import mutation, serving
from hansa.admission.mutation import Mutation
from hansa.kube import errors, resources
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
TIMEOUT_SECONDS: Final = 5  # a response takes milliseconds, so one that takes longer does not come
OPTIONAL_SECONDS: Final = 1  # pods that do not depend on Hansa wait no longer for it


@dataclass(frozen=True, slots=True)
class Service:
    """A Service of the upper cluster whose endpoints are the webhook."""

    namespace: str
    name: str
    port: int = 443

    @property
    def host(self) -> str:
        """The DNS name that the API server expects in the serving certificate."""
        return f"{self.name}.{self.namespace}.svc"


Address = Service | str  # a string is a URL


def of(
    mutations: Sequence[Mutation],
    address: Address,
    *,
    ca: bytes,
    failure_policy: str = "Fail",
    name: str = DEFAULT_NAME,
    webhook: str = WEBHOOK,
    owner: Mapping[str, str] | None = None,
) -> Object:
    """One webhook for all mutations, so that the API server makes one call and gets one patch; one for optional ones.

    The failure policy is Fail by default: a pod that is stored without its mutations would run where it must not.
    """
    client = {**_address(address), **({"caBundle": base64.b64encode(ca).decode()} if ca else {})}
    needed = [one for one in mutations if not one.is_optional]
    entries = [_webhook(webhook, needed, client, failure_policy, TIMEOUT_SECONDS)]
    if optional := [one for one in mutations if one.is_optional]:
        entries.append(_webhook(f"optional.{webhook}", optional, client, "Ignore", OPTIONAL_SECONDS))
    metadata = {"name": name} | ({"ownerReferences": [dict(owner)]} if owner else {})
    head = {"apiVersion": RESOURCE.api_version, "kind": RESOURCE.kind, "metadata": metadata}
    return Object.of({**head, "webhooks": entries})


def _webhook(
    name: str, mutations: Sequence[Mutation], client: Mapping[str, Any], failure_policy: str, seconds: int
) -> dict[str, Any]:
    return {
        "name": name,
        "clientConfig": dict(client),
        "rules": mutation.rules(mutations),
        **mutation.selectors(mutations),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": failure_policy,
        "reinvocationPolicy": "IfNeeded",  # a webhook that is called later may change the object again
        "timeoutSeconds": seconds,
    }


async def owner_reference(client: Client, cluster_role: str) -> dict[str, str]:
    """A reference to a ClusterRole. The garbage collector deletes the configuration with it."""
    found = await client.get(resources.CLUSTER_ROLES, cluster_role)
    head = {"apiVersion": resources.CLUSTER_ROLES.api_version, "kind": resources.CLUSTER_ROLES.kind}
    return {**head, "name": cluster_role, "uid": found.uid}


async def ensure(client: Client, wanted: Object) -> bool:
    """Create the configuration, or correct what differs; returns whether that was necessary.

    A caBundle that was injected (by cert-manager, say) is kept.
    """
    try:
        have = await client.get(RESOURCE, wanted.name)
    except errors.NotFound:
        await client.create(RESOURCE, wanted)
        return True
    if patch := _patch(have, wanted):
        await client.patch(RESOURCE, wanted.name, patch)
    return bool(patch)


def _patch(have: Object, wanted: Object) -> dict[str, Any]:
    existing = {one["name"]: one for one in have.get("webhooks") or ()}
    made = [_with_injected(webhook, existing.get(webhook["name"], {})) for webhook in wanted.get("webhooks")]
    is_same = len(made) == len(existing) and all(one.items() <= existing.get(one["name"], {}).items() for one in made)
    patch: dict[str, Any] = {} if is_same else {"webhooks": made}
    owners = wanted.metadata.owner_references
    if owners and owners != have.metadata.owner_references:
        patch["metadata"] = {"ownerReferences": msgspec.to_builtins(owners)}
    return patch


def _with_injected(webhook: dict[str, Any], existing: Mapping[str, Any]) -> dict[str, Any]:
    injected = {name: ca for name, ca in (existing.get("clientConfig") or {}).items() if name == "caBundle"}
    return {**webhook, "clientConfig": {**injected, **webhook["clientConfig"]}}


async def uninstall(client: Client, name: str) -> None:
    """Delete a configuration, if it exists."""
    with contextlib.suppress(errors.NotFound):
        await client.delete(RESOURCE, name)


def _address(address: Address) -> dict[str, Any]:
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
