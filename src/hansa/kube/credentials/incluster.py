"""Credentials of the service account of this pod. Its token is a file that the kubelet replaces before it expires."""

import os
from collections.abc import Mapping
from pathlib import Path

from hansa.kube.credentials.login import File, Login
from hansa.kube.credentials.refreshing import Credentials
from hansa.kube.errors import BadCredentials

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def from_pod(folder: Path = FOLDER, environ: Mapping[str, str] | None = None) -> Credentials:
    """Credentials from the mounted files and environment variables of a pod."""
    return Credentials(lambda: login(folder, os.environ if environ is None else environ))


def login(folder: Path, environ: Mapping[str, str]) -> Login:
    """The login that a pod's service account gives."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise BadCredentials("this is not a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    namespace = folder / "namespace"
    return Login(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        server_origin="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT",
        origin=f"the service account in {folder}",
        ca=File(folder / "ca.crt", str(folder / "ca.crt")),
        token=File(folder / "token", str(folder / "token")),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )
