"""etcd's JSON API, as far as tenants need it: is it well, forget a prefix, who may read and write what."""

import base64
import json
import ssl
from dataclasses import dataclass
from typing import Any

import aiohttp

from hansa.runtime.errors import HansaError

REQUEST_SECONDS = 30.0
PROBE_SECONDS = 2.0
ROOT = "root"  # etcd's own name for the user and the role that may do everything
READ_WRITE = 2


DONE_BEFORE = ("already exists", "not found", "is already granted")


class EtcdRefused(HansaError):
    """etcd answered, and did not do it."""


class DoneBefore(EtcdRefused):
    """What was asked for is so already."""


@dataclass(frozen=True, slots=True)
class EtcdApi:
    """One etcd, and the certificates that we show it."""

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
        """Ask for something; the token is that of a user."""
        headers = {"Authorization": token} if token else {}
        try:
            async with (
                self._session(REQUEST_SECONDS) as session,
                session.post(f"{self.url}/v3/{path}", json=body, headers=headers) as answer,
            ):
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise HansaError(f"etcd did not answer at {self.url}: {error}") from error
        content = _content(text)
        if answer.status != 200:
            why = str(content.get("message") or content.get("error") or text.strip())
            kind = DoneBefore if any(words in why for words in DONE_BEFORE) else EtcdRefused
            raise kind(f"etcd refused {path}: {why}")
        return content

    async def login(self, password: str) -> str:
        """A token of root."""
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
    """The fields that name all keys below a prefix."""
    first = prefix.encode()
    return {"key": _b64(first), "range_end": _b64(first[:-1] + bytes([first[-1] + 1]))}


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
