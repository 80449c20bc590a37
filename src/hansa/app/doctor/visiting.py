"""Visits to an API server: does it answer to these credentials, which version is it, what time does it have.

Also when its certificate and ours end. Each is a value for the checks; nothing is raised but bugs.
"""

import datetime
import email.utils
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from hansa.app.program import agent
from hansa.kube import decoding, errors, peer
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.runtime.clock import Clock

SECOND: Final = datetime.timedelta(seconds=1)


class Role(StrEnum):
    """What a server is for the cluster that is examined."""

    CLUSTER = "cluster"  # itself
    TENANT = "tenant"
    SUPER = "super cluster"
    TARGET = "target"


@dataclass(frozen=True, slots=True)
class Visit:
    """What a visit found. Of a server that does not answer, only the error is known."""

    role: Role
    name: str
    server: str = ""
    version: str = ""
    ahead: float = 0.0  # seconds that its clock is ahead of ours, as far as it differs for sure
    serving_ends: datetime.datetime | None = None
    client_ends: datetime.datetime | None = None
    error: errors.ApiError | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.name}"


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


async def visit(role: Role, name: str, credentials: Credentials, *, deadline: float, clock: Clock) -> Visit:
    """Visit a server."""
    try:
        access = await credentials.access()
    except errors.ApiError as error:
        return Visit(role, name, error=error)
    ends = await _serving_end(access.server, access.server_name or "", access.proxy or "", deadline)
    found = {"server": access.server, "serving_ends": ends, "client_ends": access.certificate_ends}
    try:
        async with Client(credentials, user_agent=agent("doctor"), deadline=deadline) as client:
            before = clock.wall()
            # Any user may read /version, also an unknown one; that these credentials count shows the next request.
            answer = await client.request("GET", "/version", doing="read the server's version")
            after = clock.wall()
            await client.request("GET", "/api", doing="use the credentials")
    except errors.ApiError as error:
        return Visit(role, name, error=error, **found)  # type: ignore[arg-type]
    ahead = seconds_ahead(answer.headers.get("Date", ""), before, after)
    return Visit(role, name, version=_version(answer.body), ahead=ahead, **found)  # type: ignore[arg-type]


def seconds_ahead(date: str, before: datetime.datetime, after: datetime.datetime) -> float:
    """How far a server's clock is ahead of ours at least; its Date is cut to seconds, and was read while we waited."""
    try:
        theirs = email.utils.parsedate_to_datetime(date)
    except ValueError:
        return 0.0
    if theirs.tzinfo is None:
        return 0.0
    if theirs > after:
        return (theirs - after).total_seconds()
    if theirs + SECOND < before:
        return (theirs + SECOND - before).total_seconds()
    return 0.0


async def _serving_end(server: str, name: str, proxy: str, deadline: float) -> datetime.datetime | None:
    if proxy:
        return None
    try:
        return await peer.certificate_end(server, server_name=name, deadline=deadline)
    except errors.Unreachable:
        return None  # the request says why


def _version(body: bytes) -> str:
    try:
        return decoding.parse(body, _Version).git_version
    except msgspec.DecodeError:
        return ""
