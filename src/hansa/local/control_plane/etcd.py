"""The etcd that all clusters of a state folder share, each under its own key prefix, on a Unix socket."""

import base64
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from hansa.local.control_plane import command_lines
from hansa.local.state import State
from hansa.programs import components, process, starting
from hansa.programs.process import Identity
from hansa.runtime.errors import HansaError

REQUEST_SECONDS = 30.0
PROBE_SECONDS = 2.0
REQUIRED_BYTES = 200 << 20  # its write-ahead log alone takes 64 MB before the first object


@dataclass(frozen=True, slots=True)
class Etcd:
    """The shared etcd of a state folder; callers hold the state's lock."""

    state: State

    @property
    def socket(self) -> Path:
        """The Unix socket on which it serves."""
        return self.state.etcd / "client.sock"

    @property
    def log(self) -> Path:
        """Its log file."""
        return self.state.etcd / "etcd.log"

    async def ensure(self, binary: Path, *, is_fast: bool) -> None:
        """Start etcd unless it runs. A running one is not restarted, since other clusters use it."""
        running = self._process()
        if running is None:
            self.state.etcd.mkdir(mode=0o700, exist_ok=True)
            self._check_disk()
            self.socket.unlink(missing_ok=True)
            argv = components.etcd_argv(binary, self.state.etcd, is_fast=is_fast)
            running = process.spawn(Identity(self.state.root, "", components.ETCD), argv, log=self.log)
        await starting.wait_until_serving(running, self._is_healthy, log=self.log)

    async def delete_prefix(self, cluster: str) -> None:
        """Delete all keys of a cluster."""
        if self._process() is None:
            return
        prefix = (command_lines.etcd_prefix(cluster) + "/").encode()
        end = prefix[:-1] + bytes([prefix[-1] + 1])
        body = {"key": base64.b64encode(prefix).decode(), "range_end": base64.b64encode(end).decode()}
        await self._post("/v3/kv/deleterange", body)

    async def remove(self) -> None:
        """Stop etcd and remove its data."""
        if (running := self._process()) is not None:
            await running.stop()
        shutil.rmtree(self.state.etcd, ignore_errors=True)

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self.state.etcd).free
        if free < REQUIRED_BYTES:
            raise HansaError(
                f"not enough disk space for etcd in {self.state.etcd}: {free >> 20} MiB free,"
                f" {REQUIRED_BYTES >> 20} MiB needed"
            )

    def _process(self) -> process.Process | None:
        return process.running(self.state.root).get(("", components.ETCD))

    async def _is_healthy(self) -> bool:
        try:
            async with self._session(PROBE_SECONDS) as session, session.get("http://etcd/health") as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def _post(self, path: str, body: dict[str, Any]) -> None:
        try:
            async with (
                self._session(REQUEST_SECONDS) as session,
                session.post(f"http://etcd{path}", json=body) as answer,
            ):
                answer.raise_for_status()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise HansaError(f"etcd did not answer on {self.socket}: {error}") from error

    def _session(self, seconds: float) -> aiohttp.ClientSession:
        connector = aiohttp.UnixConnector(path=str(self.socket))
        return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=seconds))
