"""Kubeconfigs: their fields are used, and an invalid one is reported by file and field."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from hansa.kube.credentials import access, kubeconfig
from hansa.kube.credentials.access import Access
from hansa.kube.credentials.login import File, Login
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.errors import BadCredentials
from kube_files import authority, client_pair, document, encoded, write

SERVER = {"server": "https://a.example:6443"}
HUSH = "hush-hush"


def login(cluster: dict[str, Any] = SERVER, user: dict[str, Any] | None = None, **context: Any) -> Login:
    text = yaml.safe_dump(document(cluster, user or {}, **context))
    return kubeconfig.parse(text, origin="test.yaml")


def built(cluster: dict[str, Any] = SERVER, user: dict[str, Any] | None = None) -> Access:
    return access.build(login(cluster, user))


def test_the_cluster_s_fields_are_used() -> None:
    found = built(SERVER | {"tls-server-name": "b.example", "proxy-url": "http://proxy:3128"})
    assert (found.server, found.server_name, found.proxy) == (SERVER["server"], "b.example", "http://proxy:3128")
    assert login(namespace="shop").namespace == "shop"
    assert login().namespace == "default"


def test_a_server_without_tls_or_with_a_path_is_fine() -> None:
    assert built({"server": "http://localhost:8080"}).tls is None
    assert (
        built({"server": "https://rancher.example/k8s/clusters/c-1/"}).server
        == "https://rancher.example/k8s/clusters/c-1"
    )


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        ({"token": HUSH}, [("Authorization", f"Bearer {HUSH}")]),
        ({"username": "me", "password": "pw"}, [("Authorization", "Basic bWU6cHc=")]),
        (
            {"as": "ann", "as-uid": "7", "as-groups": ["x", "y"], "as-user-extra": {"team": ["z"]}},
            [
                ("Impersonate-User", "ann"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "x"),
                ("Impersonate-Group", "y"),
                ("Impersonate-Extra-team", "z"),
            ],
        ),
        ({}, []),
    ],
)
def test_the_user_s_fields_become_headers(user: dict[str, Any], headers: list[tuple[str, str]]) -> None:
    assert list(built(SERVER, user).headers) == headers


def test_certificates_are_taken_from_data_and_from_files_next_to_the_kubeconfig(tmp_path: Path) -> None:
    ca = authority()
    pair = client_pair(ca)
    (tmp_path / "pki").mkdir()
    for name, data in (("ca.crt", ca.certificate), ("me.crt", pair.certificate), ("me.key", pair.key)):
        (tmp_path / "pki" / name).write_bytes(data)
    by_file = kubeconfig.login(
        kubeconfig.read_files(
            [
                write(
                    tmp_path / "config",
                    document(
                        SERVER | {"certificate-authority": "pki/ca.crt"},
                        {"client-certificate": "pki/me.crt", "client-key": "pki/me.key"},
                    ),
                )
            ]
        )
    )
    by_data = login(
        SERVER | {"certificate-authority-data": encoded(ca.certificate), "certificate-authority": "not-used"},
        {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)},
    )
    assert access.build(by_file).content == access.build(by_data).content
    assert by_file.ca == File(
        tmp_path / "pki/ca.crt", f"clusters[c].cluster.certificate-authority of {tmp_path / 'config'}"
    )


def test_a_token_file_wins_over_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    config = write(tmp_path / "config", document(SERVER, {"token": "in-place", "tokenFile": "token"}))
    found = access.build(kubeconfig.login(kubeconfig.read_files([config])))
    assert found.headers == (("Authorization", "Bearer from-file"),)


async def test_several_files_are_merged_as_kubectl_does(tmp_path: Path) -> None:
    first = write(tmp_path / "1", document(SERVER, {"token": "one"}) | {"current-context": ""})
    second = write(tmp_path / "2", document({"server": "https://b.example"}, {"token": "two"}, name="d"))
    same = write(tmp_path / "3", document({"server": "https://x.example"}, {"token": "no"}) | {"current-context": "c"})
    environ = {"KUBECONFIG": os.pathsep.join([str(first), str(tmp_path / "absent"), str(second), str(same)])}
    assert (await kubeconfig.from_environment(environ).access()).headers == (("Authorization", "Bearer two"),)
    chosen = await kubeconfig.from_environment(environ, context="c").access()
    assert (chosen.server, chosen.headers) == (SERVER["server"], (("Authorization", "Bearer one"),))


def test_an_exec_plugin_is_described(tmp_path: Path) -> None:
    spec = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./bin/get-token",
        "args": ["--cluster", "x"],
        "env": [{"name": "REGION", "value": "here"}],
        "installHint": "install it\nfrom the shelf",
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    config = write(tmp_path / "config", document(SERVER, {"exec": spec}))
    plugin = kubeconfig.login(kubeconfig.read_files([config])).plugin
    assert plugin is not None
    assert (plugin.command, plugin.args) == (str(tmp_path / "bin/get-token"), ("--cluster", "x"))
    assert (plugin.env, plugin.install_hint) == ({"REGION": "here"}, "install it from the shelf")
    assert (plugin.provide_cluster_info, plugin.needs_terminal) == (True, False)


PAIR = client_pair(authority())
OTHER = client_pair(authority())
GOOD = document(SERVER, {})
EXEC = {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}


def complaint(text: str) -> str:
    with pytest.raises(BadCredentials) as caught:
        access.build(kubeconfig.parse(text, origin="test.yaml"))
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert HUSH not in sentence
    return sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "test.yaml is not YAML at line 1"),
        (f"token: {{{HUSH}", "test.yaml is not YAML at line 1"),
        ("just text", "test.yaml is not a kubeconfig: it holds no mapping"),
        ("", "test.yaml is not a kubeconfig: it holds no mapping"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_refused(text: str, sentence: str) -> None:
    assert sentence in complaint(text)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"current-context": None}, "test.yaml has no current-context"),
        ({"current-context": "z"}, 'there is no context "z" in test.yaml; it has c'),
        ({"contexts": None}, 'there is no context "c" in test.yaml; it has none'),
        ({"contexts": {"a": "b"}}, "contexts of test.yaml must be a list of mappings"),
        ({"clusters": []}, 'contexts[c].context.cluster of test.yaml is "c", which is not among clusters'),
        ({"users": []}, 'contexts[c].context.user of test.yaml is "c", which is not among users'),
    ],
)
def test_a_reference_to_a_missing_entry_is_reported_by_its_field(change: dict[str, Any], sentence: str) -> None:
    assert sentence in complaint(yaml.safe_dump(GOOD | change))


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("server", None, "is missing"),
        ("server", ["x"], "must be a string"),
        ("server", "ftp://x", 'is "ftp://x", which is not an http(s) URL'),
        ("server", "https://x:port", "is not an http(s) URL"),
        ("insecure-skip-tls-verify", "yes", "must be true or false"),
        ("certificate-authority-data", "?", "is not valid base64"),
        ("certificate-authority-data", encoded(b"x"), "is not PEM"),
        ("certificate-authority", "/absent/ca", "No such file"),
        ("proxy-url", f"socks5://me:{HUSH}@x", "is not an http:// or https:// URL"),
        ("extensions", {}, "must be a list of mappings"),
    ],
)
def test_an_invalid_field_of_a_cluster_is_reported(field: str, value: object, problem: str) -> None:
    sentence = complaint(yaml.safe_dump(document(SERVER | {field: value}, {})))
    assert f"clusters[c].cluster.{field} of test.yaml" in sentence
    assert problem in sentence


@pytest.mark.parametrize(
    ("user", "field", "problem"),
    [
        (
            {"client-certificate-data": encoded(b"x"), "client-key-data": "eA=="},
            "client-certificate-data",
            "is not PEM",
        ),
        ({"tokenFile": "/absent/token"}, "tokenFile", "cannot read /absent/token"),
        ({"token": f"{HUSH}\n{HUSH}"}, "token", "has characters"),
        ({"as-groups": ["x"]}, "as", "is missing"),
        ({"as": "x", "as-groups": "y"}, "as-groups", "must be a list"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider", "is no longer a part of Kubernetes"),
        ({"exec": "x"}, "exec", "must be a mapping"),
        ({"exec": EXEC | {"command": ""}}, "exec.command", "is missing"),
        (
            {"exec": EXEC | {"apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            "exec.apiVersion",
            "must be client.",
        ),
        ({"exec": EXEC | {"env": [HUSH]}}, "exec.env", "must be a list of mappings"),
        ({"exec": EXEC | {"env": [{"value": HUSH}]}}, "exec.env", "has an entry without a name"),
    ],
)
def test_an_invalid_field_of_a_user_is_reported(user: dict[str, Any], field: str, problem: str) -> None:
    sentence = complaint(yaml.safe_dump(document(SERVER, user)))
    assert f"users[c].user.{field} of test.yaml" in sentence
    assert problem in sentence


@pytest.mark.parametrize(
    ("certificate", "key", "problem"),
    [
        (PAIR.certificate, None, 'context "c" of test.yaml has a client certificate but no client key'),
        (None, PAIR.key, 'context "c" of test.yaml has a client key but no client certificate'),
        (PAIR.certificate, OTHER.key, "do not belong together"),
        (PAIR.certificate, b"x", "users[c].user.client-key-data of test.yaml cannot be used"),
    ],
)
def test_a_certificate_without_its_key_is_reported(certificate: bytes | None, key: bytes | None, problem: str) -> None:
    parts = {"client-certificate-data": certificate, "client-key-data": key}
    user = {name: encoded(data) for name, data in parts.items() if data}
    assert problem in complaint(yaml.safe_dump(document(SERVER, user)))


async def test_a_missing_kubeconfig_is_reported_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(BadCredentials, match=rf"no kubeconfig at {tmp_path}/config; correct the path$"):
        await kubeconfig.from_files(tmp_path / "config").access()
    with pytest.raises(BadCredentials, match=rf"cannot read the kubeconfig {tmp_path}: Is a directory"):
        await kubeconfig.from_files(tmp_path).access()


async def test_a_missing_kubeconfig_names_what_to_correct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "config"
    with pytest.raises(BadCredentials, match=rf"no kubeconfig at {there}; correct --client-kubeconfig$"):
        await CredentialSource(there, flag="--client-kubeconfig").find()
    monkeypatch.setenv("KUBECONFIG", str(there))
    with pytest.raises(BadCredentials, match=rf"no kubeconfig at {there}; correct KUBECONFIG, or give --kubeconfig$"):
        await CredentialSource().find()
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    with pytest.raises(BadCredentials, match=rf"{tmp_path}/.kube/config; set KUBECONFIG, or give --kubeconfig$"):
        await kubeconfig.from_environment({}).access()


def test_secrets_never_show_in_reprs() -> None:
    user = {
        "token": HUSH,
        "password": HUSH,
        "username": "me",
        "exec": {"command": "x", "apiVersion": kubeconfig.EXEC_VERSIONS[0], "env": [{"name": "KEY", "value": HUSH}]},
        "client-certificate-data": encoded(PAIR.certificate),
        "client-key-data": encoded(PAIR.key),
    }
    parsed = login(SERVER | {"proxy-url": f"http://me:{HUSH}@proxy"}, user)
    shown = repr(parsed) + repr(access.build(parsed))
    assert HUSH not in shown
    assert "PRIVATE" not in shown
