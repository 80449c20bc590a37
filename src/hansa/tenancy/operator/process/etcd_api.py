"""A client of etcd's JSON gateway for what a shared etcd needs: health, deletion of a prefix, users and roles."""

import base64
import json
import ssl
from dataclasses import dataclass
from typing import Any

import aiohttp

from hansa.runtime.errors import HansaError

REQUEST_SECONDS = 30.0
PROBE_SECONDS = 2.0
ROOT = "root"  # the name that etcd requires for the superuser and its role
READ_WRITE = 2


ALREADY_DONE = ("already exists", "not found", "is already granted")


class EtcdRefused(HansaError):
    """etcd answered with an error."""


class AlreadyDone(EtcdRefused):
    """The request has no effect: what it asks for is the case already."""


@dataclass(frozen=True, slots=True)
class EtcdApi:
    """One etcd, with our client certificate in the TLS context."""

    url: str
    tls: ssl.SSLContext

    async def is_healthy(self) -> bool:
        """Whether it serves."""
        try:
            async with self._session(PROBE_SECONDS) as session, session.get(f"{self.url}/health") as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def post(self, path: str, body: dict[str, Any], *, token: str = "") -> dict[str, Any]:
        """Send a request; the token is from `login`."""
        headers = {"Authorization": token} if token else {}
        try:
            async with (
                self._session(REQUEST_SECONDS) as session,
                session.post(f"{self.url}/v3/{path}", json=body, headers=headers) as answer,
            ):
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise HansaError(f"no answer from etcd at {self.url}: {error}") from error
        content = _content(text)
        if answer.status != 200:
            why = str(content.get("message") or content.get("error") or text.strip())
            kind = AlreadyDone if any(words in why for words in ALREADY_DONE) else EtcdRefused
            raise kind(f"etcd refused {path}: {why}")
        return content

    async def login(self, password: str) -> str:
        """Log in as root and return the token."""
        answer = await self.post("auth/authenticate", {"name": ROOT, "password": password})
        return str(answer["token"])

    def _session(self, seconds: float) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=self.tls)
        return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=seconds))


def _content(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def prefix_range(prefix: str) -> dict[str, str]:
    """The request fields that select all keys with a prefix."""
    first = prefix.encode()
    return {"key": _b64(first), "range_end": _b64(first[:-1] + bytes([first[-1] + 1]))}


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
