"""Starts the etcd of tenants: one each (`--etcd own`), or one for all with a user and a key prefix for each tenant.

The process provisioner uses it. Ending a tenant's own etcd is left to the provisioner.
"""

import contextlib
import secrets
import shutil
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from hansa.kube import certificates
from hansa.kube.certificates import KeyPair, Subject
from hansa.programs import components, files, ports, starting
from hansa.programs.process import Identity, Process
from hansa.runtime.errors import HansaError
from hansa.tenancy.operator.process.commands import LEAN, Store
from hansa.tenancy.operator.process.etcd_api import READ_WRITE, ROOT, AlreadyDone, EtcdApi, EtcdRefused, prefix_range
from hansa.tenancy.operator.process.folder import Folder

Running = Mapping[tuple[str, str], Process]
COMPACTION = "5m"


@dataclass(frozen=True, slots=True)
class RunningEtcd:
    """The etcd process that a tenant uses."""

    store: Store
    process: Process
    log: Path


class Etcd(Protocol):
    """Provides control planes with an etcd."""

    async def ensure(self, tenant: Folder, binary: Path, running: Running) -> RunningEtcd:
        """Start etcd unless it runs, and give the tenant access."""

    async def remove(self, tenant: Folder, running: Running) -> None:
        """Remove the data of a tenant that is not in its folder."""


@dataclass(frozen=True, slots=True)
class OwnEtcd:
    """An etcd for each tenant, on a Unix socket in the tenant's folder."""

    state: Path
    is_fast: bool = False
    nice: int = 0

    async def ensure(self, tenant: Folder, binary: Path, running: Running) -> RunningEtcd:
        """Start the tenant's etcd, or adopt the one that runs."""
        tenant.etcd.mkdir(mode=0o700, parents=True, exist_ok=True)
        socket, log = tenant.etcd / "client.sock", tenant.log(components.ETCD)
        current = running.get((tenant.id, components.ETCD))
        if current is None:
            socket.unlink(missing_ok=True)
        started = await starting.ensure(
            Identity(self.state, tenant.id, components.ETCD),
            components.etcd_argv(binary, tenant.etcd, is_fast=self.is_fast),
            current=current,
            log=log,
            options=replace(LEAN, nice=self.nice),
        )
        # Not waited for: it serves before the API server, which starts at the same time, connects.
        return RunningEtcd(Store(f"unix://{socket}"), started, log)

    async def remove(self, tenant: Folder, running: Running) -> None:
        """Do nothing: its data is in the tenant's folder."""


@dataclass(frozen=True, slots=True)
class SharedEtcd:
    """One etcd for all tenants. Each has a user with a client certificate, and access to its own key prefix only."""

    state: Path
    is_fast: bool = False
    nice: int = 0

    @property
    def folder(self) -> Path:
        """Its data, keys and log."""
        return self.state / "etcd"

    async def ensure(self, tenant: Folder, binary: Path, running: Running) -> RunningEtcd:
        """Start it, or adopt the one that runs, and create the tenant's user."""
        async with files.lock(self.state / "locks" / "etcd", deadline=starting.START_SECONDS):
            started = await self._start(binary, running.get(("", components.ETCD)))
            pair = self._issue(tenant.path / "pki", "etcd-client", Subject(tenant.id))
            marker = tenant.path / "etcd-user"
            if not marker.exists():
                await self._add_user(tenant.id)
                files.write(marker, tenant.id)
        store = Store(self._url, f"/{tenant.id}", self.folder / "pki" / "ca.crt", *pair)
        return RunningEtcd(store, started, self._log)

    async def remove(self, tenant: Folder, running: Running) -> None:
        """Delete a tenant's keys, user and role. With the last tenant the whole etcd is removed: see `stop`."""
        if ("", components.ETCD) not in running:
            if any(other != tenant.path for other in tenant.path.parent.iterdir()):
                raise HansaError(
                    f"cannot delete the keys of tenant {tenant.id}: the shared etcd is not running; retrying until"
                    " the reconcile of another tenant has started it"
                )
            return
        async with files.lock(self.state / "locks" / "etcd", deadline=starting.START_SECONDS):
            api, token = await self._login()
            await api.post("kv/deleterange", prefix_range(f"/{tenant.id}/"), token=token)
            for path, body in (("auth/user/delete", {"name": tenant.id}), ("auth/role/delete", {"role": tenant.id})):
                with contextlib.suppress(AlreadyDone):  # by a run that crashed
                    await api.post(path, body, token=token)

    async def stop(self, running: Running) -> None:
        """Stop it after the last tenant, and remove its data."""
        if (process := running.get(("", components.ETCD))) is not None:
            await process.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _log(self) -> Path:
        return self.folder / "etcd.log"

    @property
    def _url(self) -> str:
        return f"https://{ports.LOOPBACK}:{(self.folder / 'port').read_text()}"

    async def _start(self, binary: Path, current: Process | None) -> Process:
        now = datetime.now(UTC)
        server = Subject("etcd", names=("localhost", ports.LOOPBACK), is_both=True)
        if not (self.folder / "pki" / "ca.crt").exists():
            _write_pair(self.folder / "pki", "ca", certificates.authority("hansa-tenants-etcd", now))
        certificate, key = self._issue(self.folder / "pki", "server", server)
        # etcd's JSON gateway rejects certificates with a CN, so root authenticates with a password.
        self._issue(self.folder / "pki", "admin", Subject("", ("hansa",)))
        if not (self.folder / "port").exists():
            [port] = ports.choose(1, taken=(), seed=str(self.folder))
            files.write(self.folder / "port", str(port))
        files.write(self.folder / "password", self._password())
        argv = [
            word
            for word in components.etcd_argv(binary, self.folder, is_fast=self.is_fast)
            if not word.startswith(("--listen-client-urls", "--advertise-client-urls"))
        ]
        argv += [
            f"--listen-client-urls={self._url}",
            f"--advertise-client-urls={self._url}",
            f"--cert-file={certificate}",
            f"--key-file={key}",
            f"--trusted-ca-file={self.folder / 'pki' / 'ca.crt'}",
            "--client-cert-auth",
            "--auto-compaction-mode=periodic",
            f"--auto-compaction-retention={COMPACTION}",
        ]
        identity, options = Identity(self.state, "", components.ETCD), replace(LEAN, nice=self.nice)
        started = await starting.ensure(identity, argv, current=current, log=self._log, options=options)
        await starting.wait_until_serving(started, self._api().is_healthy, log=self._log)
        if not (self.folder / "locked").exists():
            await self._enable_auth()
            files.write(self.folder / "locked", "")
        return started

    async def _enable_auth(self) -> None:
        """Create the root user and enable authentication. Tenants' certificates are issued only afterwards."""
        api = self._api()
        with contextlib.suppress(EtcdRefused):
            await self._login()
            return  # enabled by a run that crashed before it wrote the marker
        for path, body in (
            ("auth/user/add", {"name": ROOT, "password": self._password()}),
            ("auth/role/add", {"name": ROOT}),
            ("auth/user/grant", {"user": ROOT, "role": ROOT}),
        ):
            with contextlib.suppress(AlreadyDone):  # by a run that crashed
                await api.post(path, body)
        await api.post("auth/enable", {})

    async def _add_user(self, tenant: str) -> None:
        api, token = await self._login()
        permission = {"permType": READ_WRITE, **prefix_range(f"/{tenant}/")}
        for path, body in (
            ("auth/role/add", {"name": tenant}),
            ("auth/role/grant", {"name": tenant, "perm": permission}),
            ("auth/user/add", {"name": tenant, "options": {"no_password": True}}),
            ("auth/user/grant", {"user": tenant, "role": tenant}),
        ):
            with contextlib.suppress(AlreadyDone):
                await api.post(path, body, token=token)

    async def _login(self) -> tuple[EtcdApi, str]:
        api = self._api()
        return api, await api.login(self._password())

    def _api(self) -> EtcdApi:
        pki = self.folder / "pki"
        context = ssl.create_default_context(cafile=pki / "ca.crt")
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        return EtcdApi(url=self._url, tls=context)

    def _password(self) -> str:
        path = self.folder / "password"
        return path.read_text() if path.exists() else secrets.token_urlsafe(32)

    def _issue(self, folder: Path, name: str, subject: Subject) -> tuple[Path, Path]:
        if not (folder / f"{name}.crt").exists():
            pki = self.folder / "pki"
            ca = KeyPair((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes())
            _write_pair(folder, name, certificates.issue(ca, subject, datetime.now(UTC)))
        return folder / f"{name}.crt", folder / f"{name}.key"


def _write_pair(folder: Path, name: str, pair: KeyPair) -> None:
    # The certificate is written last, so that its presence implies the key's.
    files.write(folder / f"{name}.key", pair.key)
    files.write(folder / f"{name}.crt", pair.certificate)
