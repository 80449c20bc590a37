"""Kubeconfigs and certificates for tests."""

import base64
import datetime
from pathlib import Path
from typing import Any

import yaml

from hansa.kube import certificates
from hansa.kube.certificates import KeyPair, Subject

NOW = datetime.datetime.now(datetime.UTC)
LONG_AGO = NOW - certificates.LIFETIME - datetime.timedelta(days=1)


def authority() -> KeyPair:
    """A new CA."""
    return certificates.authority("test-ca", NOW)


def client_pair(ca: KeyPair, *, now: datetime.datetime = NOW, groups: tuple[str, ...] = ("system:masters",)) -> KeyPair:
    """A client certificate; with `now=LONG_AGO` an expired one."""
    return certificates.issue(ca, Subject("tester", groups), now)


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def document(cluster: dict[str, Any], user: dict[str, Any], *, name: str = "c", **context: Any) -> dict[str, Any]:
    """A kubeconfig with one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}}],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
    }


def write(path: Path, content: dict[str, Any]) -> Path:
    """Replace a kubeconfig atomically, as tools do."""
    fresh = path.with_suffix(".new")
    fresh.write_text(yaml.safe_dump(content))
    return fresh.rename(path)
