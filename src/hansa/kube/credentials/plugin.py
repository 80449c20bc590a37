"""Runs exec plugins: programs that print credentials (`client.authentication.k8s.io`), such as those of clouds.

A plugin has no terminal and a deadline. Its stdout is never shown in a message.
"""

import asyncio
import datetime
import os
import signal
from dataclasses import dataclass, field

import msgspec

from hansa.kube.credentials.login import Login, Plugin
from hansa.kube.errors import BadCredentials

DEADLINE = 60.0  # seconds; identity providers may be slow
LONGEST_STDERR = 300  # characters of a plugin's last line on stderr


@dataclass(frozen=True, slots=True)
class Printed:
    """The credentials that a plugin printed."""

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    expires: datetime.datetime | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime.datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


async def run(plugin: Plugin, login: Login, *, deadline: float = DEADLINE) -> Printed:
    """Run the plugin and read what it prints."""
    what = f"the exec plugin {plugin.command}, named by {plugin.origin},"
    if plugin.needs_terminal:
        raise BadCredentials(f"{what} needs a terminal (interactiveMode: Always), which is not available")
    process = await _start(plugin, login, what)
    try:
        async with asyncio.timeout(deadline):
            stdout, stderr = await process.communicate()
    except TimeoutError:
        raise BadCredentials(f"{what} did not end within {deadline:g} s") from None
    finally:
        if process.returncode is None:
            # The whole group, because a child of a shell script, such as a hanging curl, would keep running.
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode != 0:
        lines = stderr.decode(errors="replace").strip().splitlines()
        reason = f": {lines[-1][:LONGEST_STDERR]}" if lines else ""
        raise BadCredentials(f"{what} ended with exit code {process.returncode}{reason}")
    return _read(stdout, plugin, what)


async def _start(plugin: Plugin, login: Login, what: str) -> asyncio.subprocess.Process:
    spec: dict[str, object] = {"interactive": False}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster_info(login)
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    environment = {**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
    try:
        return await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,  # no controlling terminal either
        )
    except OSError as error:
        hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
        raise BadCredentials(f"{what} cannot be started: {error.strerror}{hint}") from None


def _cluster_info(login: Login) -> dict[str, object]:
    info = {
        "server": login.server,
        "tls-server-name": login.server_name,
        "insecure-skip-tls-verify": login.skip_verify,
        "certificate-authority-data": login.ca.read() if login.ca else b"",  # msgspec writes bytes as base64
        "proxy-url": login.proxy,
        "config": login.cluster_config,
    }
    return {name: value for name, value in info.items() if value}


def _read(stdout: bytes, plugin: Plugin, what: str) -> Printed:
    try:
        credential = msgspec.json.decode(stdout, type=_ExecCredential)
    except msgspec.DecodeError:
        raise BadCredentials(f"{what} printed something that is not an ExecCredential") from None
    if credential.kind != "ExecCredential" or credential.api_version != plugin.api_version:
        printed = f"{credential.api_version} {credential.kind}"
        raise BadCredentials(f"{what} printed {printed}, but {plugin.api_version} ExecCredential was requested")
    status = credential.status or _Status()
    if not status.token and not (status.client_certificate_data and status.client_key_data):
        raise BadCredentials(f"{what} printed neither a token nor a client certificate with its key")
    return Printed(
        token=status.token,
        certificate=status.client_certificate_data.encode(),
        key=status.client_key_data.encode(),
        expires=status.expiration_timestamp,
    )
