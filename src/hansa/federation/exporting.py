"""Exports a service account as a Secret with a kubeconfig, for another cluster: what `kubemcsa export` prints.

Since Kubernetes 1.24 a service account has no token by itself: one is created, or a short-lived one is requested.
"""

import asyncio
import base64
import contextlib
from dataclasses import dataclass
from typing import Any, Final

import yaml

from hansa.federation import source_objects
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials.login import Login
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.runtime import clock
from hansa.runtime.errors import HansaError

PATIENCE: Final = 60.0  # seconds for a service account to be created, and for its token to be filled in
POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What is exported, and what replaces the server's address and CA where the source reaches it by other ones."""

    account: NamespacedName
    name: str = ""  # of the Secret; by default that of the token's Secret
    server: str = ""
    ca: bytes = b""
    seconds: int = 0  # the lifetime of the token; 0: until the service account or its Secret is deleted


async def export(client: Client, login: Login, wanted: Export, *, clock: clock.Clock) -> dict[str, Any]:
    """The manifest of the Secret."""
    account = await _account(client, wanted.account, clock)
    if wanted.seconds:
        token, default = await _requested(client, wanted), f"{account.name}-token"
    else:
        secret = await _token_secret(client, account, clock)
        token, default = secret.get("data")["token"], secret.name
    name = wanted.name or default
    parts = {
        "server": wanted.server or login.server,
        "ca.crt": (wanted.ca or (login.ca.read() if login.ca else b"")).decode(),
        "namespace": account.namespace,
        "token": base64.b64decode(token).decode(),
    }
    data = {**parts, "config": _kubeconfig(name, parts, skip_verify=login.skip_verify)}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


async def _account(client: Client, name: NamespacedName, clock: clock.Clock) -> Object:
    """The service account, as soon as it exists: a source controller may be about to create it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while True:
                with contextlib.suppress(errors.NotFound):
                    return await client.get(resources.SERVICE_ACCOUNTS, name.name, namespace=name.namespace)
                await clock.sleep(POLL_SECONDS)
    raise HansaError(f"there is no service account {name} after {PATIENCE:.0f} s: create it, or a Source for it")


async def _token_secret(client: Client, account: Object, clock: clock.Clock) -> Object:
    """A Secret with a token of the service account: one that it lists, or else one that is created for it."""
    names = [one.get("name", "") for one in account.get("secrets") or ()]
    for name in [*names, source_objects.token_name(account.key).name]:
        with contextlib.suppress(errors.NotFound):
            found = await client.get(resources.SECRETS, name, namespace=account.namespace)
            if found.annotations.get(keys.TOKEN_ACCOUNT) == account.name:
                return await _filled(client, found, clock)
    made = await client.create(resources.SECRETS, source_objects.token(account.key))
    return await _filled(client, made, clock)


async def _filled(client: Client, secret: Object, clock: clock.Clock) -> Object:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while "token" not in (secret.get("data") or {}):
                await clock.sleep(POLL_SECONDS)
                secret = await client.get(resources.SECRETS, secret.name, namespace=secret.namespace)
            return secret
    raise HansaError(f"Secret {secret.key} has no token after {PATIENCE:.0f} s: is kube-controller-manager running?")


async def _requested(client: Client, wanted: Export) -> str:
    """A short-lived token, in base64."""
    head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    answer = await client.call(
        resources.SERVICE_ACCOUNTS,
        wanted.account.name,
        "token",
        body=Object.of({**head, "spec": {"expirationSeconds": wanted.seconds}}),
        namespace=wanted.account.namespace,
    )
    return base64.b64encode(answer.status["token"].encode()).decode()


def _kubeconfig(name: str, parts: dict[str, str], *, skip_verify: bool) -> str:
    cluster: dict[str, Any] = {"server": parts["server"]}
    if parts["ca.crt"]:
        cluster["certificate-authority-data"] = base64.b64encode(parts["ca.crt"].encode()).decode()
    elif skip_verify:
        cluster["insecure-skip-tls-verify"] = True
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": parts["token"]}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": parts["namespace"]}}],
        "current-context": name,
    }
    return yaml.safe_dump(config, sort_keys=False)
