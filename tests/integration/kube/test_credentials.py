"""Credentials against a real API server: who it says we are, and what it says when we are not let in."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hansa.kube import certificates, errors
from hansa.kube.certificates import KeyPair, Subject
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from hansa.local import Cluster
from kube_files import LONG_AGO, NOW, authority, client_pair, document, encoded, write
from kube_proxy import running_proxy

REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", namespaced=False)


def ca_of(cluster: Cluster) -> KeyPair:
    return KeyPair((cluster.folder / "pki/ca.crt").read_bytes(), (cluster.folder / "pki/ca.key").read_bytes())


def trusting(cluster: Cluster, **fields: Any) -> dict[str, Any]:
    """The cluster part of a kubeconfig."""
    ca = encoded(ca_of(cluster).certificate)
    return {"server": cluster.server, "certificate-authority-data": ca} | fields


def presenting(pair: KeyPair) -> dict[str, str]:
    return {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}


def client_of(path: Path, **options: Any) -> Client:
    return Client(kubeconfig.from_files(path), user_agent="hansa-test", **options)


async def whoami(client: Client) -> str:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return str((await client.create(REVIEWS, Object.of(review))).status["userInfo"]["username"])


async def failure(path: Path, **options: Any) -> str:
    """The sentence with which a request fails."""
    async with client_of(path, **options) as client:
        with pytest.raises(errors.ApiError) as caught:
            await client.list(NAMESPACES)
    assert "\n" not in str(caught.value)
    return f"{type(caught.value).__name__}: {caught.value}"


async def token_of(client: Client, account: str, namespace: str) -> str:
    plain = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace}}
    await client.create(SERVICE_ACCOUNTS, Object.of(plain))
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = await client.call(SERVICE_ACCOUNTS, account, "token", body=Object.of(request), namespace=namespace)
    return str(token.status["token"])


async def test_a_rotated_token_is_used_without_a_restart(
    client: Client, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(await token_of(client, "one", namespace))
    async with client_of(write(tmp_path / "config", document(trusting(cluster), {"tokenFile": "token"}))) as robot:
        assert await whoami(robot) == f"system:serviceaccount:{namespace}:one"
        (tmp_path / "token").write_text(await token_of(client, "two", namespace))
        robot.credentials.expire()  # instead of waiting for the next look at the file
        assert await whoami(robot) == f"system:serviceaccount:{namespace}:two"


async def test_a_refused_token_is_read_again_at_once(
    client: Client, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("no-longer-valid")
    config = write(tmp_path / "config", document(trusting(cluster), {"tokenFile": "token"}))
    async with client_of(config) as robot:
        await robot.credentials.access()
        (tmp_path / "token").write_text(await token_of(client, "one", namespace))
        assert await whoami(robot) == f"system:serviceaccount:{namespace}:one"


async def test_a_refused_token_is_told_by_file_and_field(cluster: Cluster, tmp_path: Path) -> None:
    config = write(tmp_path / "config", document(trusting(cluster), {"token": "hush-hush"}))
    sentence = await failure(config)
    assert sentence.startswith(f"Unauthorized: cannot list namespaces at {cluster.server}: Unauthorized: ")
    assert f"the credentials in users[c].user.token of {config} were refused" in sentence
    assert "hush" not in sentence


async def test_a_rotated_client_certificate_is_used_without_a_restart(cluster: Cluster, tmp_path: Path) -> None:
    def named(name: str) -> dict[str, Any]:
        pair = certificates.issue(ca_of(cluster), Subject(name, ("system:masters",)), NOW)
        return document(trusting(cluster), presenting(pair))

    path = write(tmp_path / "config", named("ann"))
    async with client_of(path) as client:
        assert await whoami(client) == "ann"
        write(path, named("bob"))
        client.credentials.expire()
        assert await whoami(client) == "bob"


async def test_an_expired_client_certificate_is_told_by_file_and_field(cluster: Cluster, tmp_path: Path) -> None:
    pair = client_pair(ca_of(cluster), now=LONG_AGO)
    config = write(tmp_path / "config", document(trusting(cluster), presenting(pair)))
    sentence = await failure(config)
    assert sentence.startswith("Unauthorized: cannot list namespaces")
    assert f"the client certificate in users[c].user.client-certificate-data of {config} expired on 20" in sentence


async def test_a_wrong_ca_is_told_by_file_and_field(cluster: Cluster, tmp_path: Path) -> None:
    wrong = trusting(cluster) | {"certificate-authority-data": encoded(authority().certificate)}
    config = write(tmp_path / "config", document(wrong, {"token": "x"}))
    sentence = await failure(config)
    assert sentence.startswith("Unreachable: cannot list namespaces: the certificate of https://")
    assert f"is not signed by the CA in clusters[c].cluster.certificate-authority-data of {config}" in sentence


async def test_without_a_ca_only_the_machine_s_are_trusted(cluster: Cluster, tmp_path: Path) -> None:
    config = write(tmp_path / "config", document({"server": cluster.server}, {"token": "x"}))
    assert "is not signed by a CA that this machine trusts" in await failure(config)


@pytest.fixture
async def expired_server(tmp_path: Path) -> AsyncIterator[tuple[str, KeyPair]]:
    """A TLS server whose certificate has expired, and the CA that signed it."""
    ca = certificates.authority("test-ca", NOW)
    pair = certificates.issue(ca, Subject("server", names=("127.0.0.1",)), LONG_AGO)
    (tmp_path / "server.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", ca


async def test_an_expired_server_certificate_is_told(expired_server: tuple[str, KeyPair], tmp_path: Path) -> None:
    url, ca = expired_server
    fields = {"server": url, "certificate-authority-data": encoded(ca.certificate)}
    sentence = await failure(write(tmp_path / "config", document(fields, {"token": "x"})))
    assert f"the certificate of {url} is out of date (certificate has expired)" in sentence


async def test_an_unreachable_host_is_told_by_file_and_field(tmp_path: Path) -> None:
    config = write(tmp_path / "config", document({"server": "https://127.0.0.1:1"}, {"token": "x"}))
    assert await failure(config) == (
        "Unreachable: cannot list namespaces: https://127.0.0.1:1, from clusters[c].cluster.server of "
        f"{config}, cannot be reached (connection refused)"
    )
    config = write(tmp_path / "config", document({"server": "https://no-such-host.invalid"}, {"token": "x"}))
    assert f"clusters[c].cluster.server of {config}, cannot be reached (" in await failure(config)


async def test_a_server_is_known_by_its_tls_server_name(cluster: Cluster, tmp_path: Path) -> None:
    user = presenting(client_pair(ca_of(cluster)))
    good = document(trusting(cluster, **{"tls-server-name": "kubernetes.default.svc"}), user)
    async with client_of(write(tmp_path / "config", good)) as client:
        assert await whoami(client) == "tester"
    wrong = document(trusting(cluster, **{"tls-server-name": "example.com"}), user)
    assert "is not for tls-server-name example.com" in await failure(write(tmp_path / "config", wrong))


async def test_an_unverified_server_is_used_when_asked_for(cluster: Cluster, tmp_path: Path) -> None:
    fields = {"server": cluster.server, "insecure-skip-tls-verify": True}
    config = write(tmp_path / "config", document(fields, presenting(client_pair(ca_of(cluster)))))
    async with client_of(config) as client:
        assert await whoami(client) == "tester"


async def test_a_proxy_is_used_and_its_password_stays_secret(cluster: Cluster, tmp_path: Path) -> None:
    user = presenting(client_pair(ca_of(cluster)))
    async with running_proxy() as proxy:
        url = proxy.url.replace("http://", "http://me:hush@")
        async with client_of(write(tmp_path / "config", document(trusting(cluster, **{"proxy-url": url}), user))) as c:
            assert await whoami(c) == "tester"
        assert len(proxy.heads) == 1
        assert b"Proxy-Authorization: Basic bWU6aHVzaA==" in proxy.heads[0]
    config = write(tmp_path / "config", document(trusting(cluster, **{"proxy-url": url}), user))
    sentence = await failure(config)
    assert f"the proxy in clusters[c].cluster.proxy-url of {config} does not connect to https:" in sentence
    assert "hush" not in sentence


async def test_impersonation_is_passed_on(cluster: Cluster, tmp_path: Path) -> None:
    user = presenting(client_pair(ca_of(cluster))) | {"as": "ann", "as-groups": ["system:masters", "x"]}
    async with client_of(write(tmp_path / "config", document(trusting(cluster), user))) as client:
        assert await whoami(client) == "ann"
    nobody = user | {"as-groups": ["x"]}
    sentence = await failure(write(tmp_path / "config", document(trusting(cluster), nobody)))
    assert sentence.startswith("Forbidden: cannot list namespaces at https://")
    assert 'User "ann" cannot list resource "namespaces"' in sentence


async def test_an_exec_plugin_lets_us_in(client: Client, cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    token = await token_of(client, "one", namespace)
    program = tmp_path / "plugin"
    status = f'{{"apiVersion":"{kubeconfig.EXEC_VERSIONS[0]}","kind":"ExecCredential","status":{{"token":"{token}"}}}}'
    program.write_text(f"#!/bin/sh\necho '{status}'\n")
    program.chmod(0o700)
    spec = {"apiVersion": kubeconfig.EXEC_VERSIONS[0], "command": "./plugin", "interactiveMode": "IfAvailable"}
    async with client_of(write(tmp_path / "config", document(trusting(cluster), {"exec": spec}))) as robot:
        assert await whoami(robot) == f"system:serviceaccount:{namespace}:one"
