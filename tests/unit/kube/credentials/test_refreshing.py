"""Credentials are refreshed: changed files are used, half written ones are not, unchanged ones are not read."""

import datetime
import logging
import os
from pathlib import Path

import pytest
import yaml

from hansa.kube.credentials import Credentials, incluster, kubeconfig
from hansa.kube.credentials.login import Login
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.errors import BadCredentials
from hansa.kube.objects import Object
from kube_files import LONG_AGO, NOW, authority, client_pair, document, encoded, write

SERVER = {"server": "https://a.example:6443"}


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def wall(self) -> datetime.datetime:
        return NOW + datetime.timedelta(seconds=self.time)

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


def of(path: Path, clock: Hand) -> Credentials:
    return Credentials(lambda: kubeconfig.login(kubeconfig.read_files([path])), clock=clock)


async def token(credentials: Credentials) -> str:
    return dict((await credentials.access()).headers)["Authorization"].removeprefix("Bearer ")


async def test_a_changed_kubeconfig_is_used_without_a_restart(tmp_path: Path) -> None:
    clock = Hand()
    path = write(tmp_path / "config", document(SERVER, {"token": "one"}))
    credentials = of(path, clock)
    assert await token(credentials) == "one"
    write(path, document({"server": "https://b.example"}, {"token": "two"}))
    clock.time += 1
    assert (await token(credentials), (await credentials.access()).server) == ("two", "https://b.example")


async def test_a_rotated_token_file_is_used(tmp_path: Path) -> None:
    clock = Hand()
    (tmp_path / "token").write_text("one")
    credentials = of(write(tmp_path / "config", document(SERVER, {"tokenFile": "token"})), clock)
    assert await token(credentials) == "one"
    (tmp_path / "token.new").write_text("two")
    (tmp_path / "token.new").rename(tmp_path / "token")
    clock.time += 1
    assert await token(credentials) == "two"


async def test_a_rotated_client_certificate_is_used(tmp_path: Path) -> None:
    clock, ca = Hand(), authority()

    def rotate() -> None:
        pair = client_pair(ca)
        (tmp_path / "me.crt").write_bytes(pair.certificate)
        (tmp_path / "me.key").write_bytes(pair.key)

    rotate()
    user = {"client-certificate": "me.crt", "client-key": "me.key"}
    credentials = of(write(tmp_path / "config", document(SERVER, user)), clock)
    first = await credentials.access()
    rotate()
    clock.time += 1
    second = await credentials.access()
    assert second.tls is not first.tls
    assert second.content != first.content


async def test_a_half_written_rotation_leaves_the_former_credentials(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Hand()
    path = write(tmp_path / "config", document(SERVER, {"token": "one-hush"}))
    credentials = of(path, clock)
    assert await token(credentials) == "one-hush"
    path.write_text("users: [")
    clock.time += 1
    with caplog.at_level(logging.WARNING):
        assert await token(credentials) == "one-hush"
    (warning,) = caplog.records
    assert "not YAML" in warning.__dict__["error"]
    assert "hush" not in str(warning.__dict__)
    write(path, document(SERVER, {"token": "two"}))
    clock.time += 1
    assert await token(credentials) == "two"


async def test_unchanged_files_are_not_read_again_and_connections_stay(tmp_path: Path) -> None:
    clock, reads = Hand(), 0
    path = write(tmp_path / "config", document(SERVER, {"token": "one"}))

    def read() -> Login:
        nonlocal reads
        reads += 1
        return kubeconfig.login(kubeconfig.read_files([path]))

    credentials = Credentials(read, clock=clock)
    first = await credentials.access()
    clock.time += 100
    assert await credentials.access() is first
    assert reads == 1
    os.utime(path)  # touched, but the same
    clock.time += 100
    assert await credentials.access() is first
    assert reads == 2


async def test_a_refusal_leads_to_what_is_newer_at_once_or_to_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document(SERVER, {"token": "one"}))
    credentials = of(path, Hand())
    refused = await credentials.access()
    assert await credentials.renew(refused) is refused
    write(path, document(SERVER, {"token": "two"}))
    renewed = await credentials.renew(refused)
    assert dict(renewed.headers)["Authorization"] == "Bearer two"
    assert await credentials.renew(refused) is renewed


async def test_a_pod_s_service_account_is_used_and_followed(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(authority().certificate)
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "namespace").write_text("shop")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    credentials = incluster.from_pod(tmp_path, environ)
    access = await credentials.access()
    assert (access.server, access.login.namespace) == ("https://[fd00::1]:443", "shop")
    (tmp_path / "token").write_text("newer-token")
    assert dict((await credentials.renew(access)).headers)["Authorization"] == "Bearer newer-token"


async def test_outside_of_a_pod_there_is_a_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadCredentials, match="this is not a pod: KUBERNETES_SERVICE_HOST"):
        await incluster.from_pod(tmp_path, {}).access()


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "id", "interactiveMode": "Never"}


def secret(**data: bytes) -> Object:
    plain = {name.replace("_", "."): encoded(value) for name, value in data.items()}
    return Object.of({"kind": "Secret", "metadata": {"name": "r2", "namespace": "vc"}, "data": plain})


async def test_a_secret_s_kubeconfig_is_used_and_its_newer_versions_too() -> None:
    def version(token: str) -> Object:
        return secret(kubeconfig=yaml.safe_dump(document(SERVER, {"token": token})).encode())

    credentials = SecretCredentials(version("one"))
    assert await token(credentials) == "one"
    credentials.observe(version("two"))
    assert await token(credentials) == "two"


async def test_a_secret_with_server_ca_and_token_is_used() -> None:
    ca = authority().certificate
    access = await SecretCredentials(secret(server=b"https://r2:6443", ca_crt=ca, token=b"one")).access()
    assert (access.server, access.headers) == ("https://r2:6443", (("Authorization", "Bearer one"),))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "secret vc/r2 has neither a kubeconfig nor the keys server and token"),
        ({"kubeconfig": b"a: ["}, "key kubeconfig of secret vc/r2 is not YAML"),
        ({"server": b"nothing://", "token": b"t"}, "key server of secret vc/r2 is"),
        (
            {"kubeconfig": yaml.safe_dump(document(SERVER, {"tokenFile": "/run/token"})).encode()},
            "secret vc/r2 refers to files or an exec plugin",
        ),
        (
            {"kubeconfig": yaml.safe_dump(document(SERVER, {"exec": PLUGIN})).encode()},
            "secret vc/r2 refers to files or an exec plugin",
        ),
    ],
)
async def test_an_invalid_secret_is_reported_by_its_key(data: dict[str, bytes], sentence: str) -> None:
    with pytest.raises(BadCredentials, match=sentence):
        await SecretCredentials(secret(**data)).access()


async def test_an_expired_client_certificate_explains_a_refusal(tmp_path: Path) -> None:
    pair = client_pair(authority(), now=LONG_AGO)
    user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
    path = write(tmp_path / "config", document(SERVER, user))
    access = await kubeconfig.from_files(path).access()
    assert f"users[c].user.client-certificate-data of {path} expired on " in access.refusal(NOW)
