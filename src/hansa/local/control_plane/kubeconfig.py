"""Builds kubeconfigs of local clusters, and merges them into one with a context for each cluster. Pure."""

import base64
from collections.abc import Iterable
from typing import Any

import yaml

from hansa.kube.certificates import KeyPair


def make(name: str, server: str, *, ca: bytes, user: KeyPair) -> dict[str, Any]:
    """A kubeconfig with one cluster, user and context of that name and embedded certificates."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": _base64(ca)}}],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _base64(user.certificate),
                    "client-key-data": _base64(user.key),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def merge(configs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """One kubeconfig with all contexts; the context of the first is current."""
    merged: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for config in configs:
        for part in ("clusters", "users", "contexts"):
            merged[part] += config[part]
        merged.setdefault("current-context", config["current-context"])
    return merged


def dump(config: dict[str, Any]) -> str:
    """The text of a kubeconfig file."""
    return yaml.safe_dump(config, sort_keys=False)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
