"""Exec plugins: real programs, run without a terminal and with a deadline."""

import asyncio
import datetime
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from eventually import eventually
from hansa.kube.credentials import Access, Credentials, kubeconfig
from hansa.kube.errors import BadCredentials
from kube_files import authority, client_pair, document, write

V1, V1BETA1 = kubeconfig.EXEC_VERSIONS
SERVER = {"server": "https://a.example:6443"}
PRINT = """#!/bin/sh
echo run >> "$0.runs"
cat "$0.out"
"""


def credentials_of(tmp_path: Path, script: str, *, deadline: float = 10.0, **spec: Any) -> Credentials:
    """Credentials of a kubeconfig with that plugin."""
    program = tmp_path / "plugin"
    program.write_text(script)
    program.chmod(stat.S_IRWXU)
    exec_spec = {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never", **spec}
    path = write(tmp_path / "config", document(SERVER | {"tls-server-name": "b"}, {"exec": exec_spec}))
    return Credentials(lambda: kubeconfig.login(kubeconfig.read_files([path])), plugin_deadline=deadline)


def prints(tmp_path: Path, *, api_version: str = V1, **status: Any) -> None:
    """What the plugin will print from now on."""
    credential = {"apiVersion": api_version, "kind": "ExecCredential", "status": status}
    (tmp_path / "plugin.out").write_text(json.dumps(credential))


def bearer(access: Access) -> str:
    return dict(access.headers)["Authorization"]


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "plugin.runs").read_text().split())


def in_seconds(seconds: float) -> str:
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)).isoformat()


@pytest.mark.parametrize("api_version", [V1, V1BETA1])
async def test_a_printed_token_is_used_and_kept(tmp_path: Path, api_version: str) -> None:
    prints(tmp_path, api_version=api_version, token="one")
    credentials = credentials_of(tmp_path, PRINT, apiVersion=api_version)
    first, second = await asyncio.gather(credentials.access(), credentials.access())
    assert bearer(first) == "Bearer one"
    assert second is first
    assert runs(tmp_path) == 1


async def test_a_printed_certificate_is_used(tmp_path: Path) -> None:
    pair = client_pair(authority())
    prints(tmp_path, clientCertificateData=pair.certificate.decode(), clientKeyData=pair.key.decode())
    access = await credentials_of(tmp_path, PRINT).access()
    assert access.certificate_ends is not None
    assert access.headers == ()


async def test_a_credential_is_replaced_before_it_expires(tmp_path: Path) -> None:
    prints(tmp_path, token="one", expirationTimestamp=in_seconds(1.5))
    credentials = credentials_of(tmp_path, PRINT)
    assert bearer(await credentials.access()) == "Bearer one"
    prints(tmp_path, token="two", expirationTimestamp=in_seconds(3600))

    async def is_replaced() -> bool:
        return bearer(await credentials.access()) == "Bearer two"

    await eventually(is_replaced)
    await credentials.access()
    assert runs(tmp_path) == 2


async def test_a_refused_credential_makes_the_plugin_run_again(tmp_path: Path) -> None:
    prints(tmp_path, token="one")
    credentials = credentials_of(tmp_path, PRINT)
    refused = await credentials.access()
    prints(tmp_path, token="two")
    assert bearer(await credentials.renew(refused)) == "Bearer two"


async def test_a_plugin_gets_its_arguments_variables_and_the_cluster_but_no_terminal(tmp_path: Path) -> None:
    script = """#!/bin/sh
    if [ -t 0 ] || read line || (true < /dev/tty) 2>/dev/null; then exit 9; fi
    printf '%s|%s|%s' "$1" "$REGION" "$KUBERNETES_EXEC_INFO" > "$0.seen"
    cat "$0.out"
    """
    prints(tmp_path, token="one")
    env = [{"name": "REGION", "value": "here"}]
    await credentials_of(tmp_path, script, args=["-v"], env=env, provideClusterInfo=True).access()
    argument, variable, info = (tmp_path / "plugin.seen").read_text().split("|")
    assert (argument, variable) == ("-v", "here")
    assert json.loads(info) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": SERVER["server"], "tls-server-name": "b"}},
    }


@pytest.mark.parametrize(
    ("script", "spec", "sentence"),
    [
        ("#!/bin/sh\necho hush\necho first >&2\necho no network >&2\nexit 3", {}, "ended with exit code 3: no network"),
        ("#!/bin/sh\necho hush", {}, "printed something that is not an ExecCredential"),
        ("#!/bin/sh\necho '{}'", {}, f"but {V1} ExecCredential was requested"),
        (f'#!/bin/sh\necho \'{{"apiVersion":"{V1}","kind":"ExecCredential"}}\'', {}, "printed neither a token nor"),
        ("#!/bin/sh\nsleep 1000", {"deadline": 0.2}, "did not end within 0.2 s"),
        (
            "#!/bin/sh",
            {"command": "/absent/plugin", "installHint": "get it"},
            "cannot be started: No such file or directory; get it",
        ),
        ("#!/bin/sh", {"interactiveMode": "Always"}, "needs a terminal"),
    ],
)
async def test_a_plugin_that_fails_is_told_by_file_and_field(
    tmp_path: Path, script: str, spec: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadCredentials) as caught:
        await credentials_of(tmp_path, script, **spec).access()
    assert sentence in str(caught.value)
    assert f"users[c].user.exec.command of {tmp_path / 'config'}" in str(caught.value)
    assert "hush" not in str(caught.value)


async def test_a_hanging_plugin_s_children_end_with_it(tmp_path: Path) -> None:
    script = '#!/bin/sh\nsleep 1000 &\necho $! > "$0.child"\nwait'
    with pytest.raises(BadCredentials, match="did not end"):
        await credentials_of(tmp_path, script, deadline=0.5).access()
    child = (tmp_path / "plugin.child").read_text().strip()

    async def is_gone() -> bool:
        status = Path(f"/proc/{child}/stat")
        return not status.exists() or status.read_text().split()[2] == "Z"

    await eventually(is_gone)


async def test_a_failing_plugin_does_not_end_a_credential_that_still_works(tmp_path: Path) -> None:
    prints(tmp_path, token="one")
    credentials = credentials_of(tmp_path, PRINT)
    await credentials.access()
    (tmp_path / "plugin.out").write_text("nothing")
    credentials.expire()
    assert bearer(await credentials.access()) == "Bearer one"
