"""Credentials of another cluster in a Secret: a kubeconfig, or the keys server, ca.crt and token.

A kubeconfig that refers to files or exec plugins is refused. Callers watch the Secret and pass newer versions, which
the next request uses.
"""

from hansa.kube.credentials import kubeconfig
from hansa.kube.credentials.login import Login, Text, base64_text
from hansa.kube.credentials.refreshing import Credentials
from hansa.kube.errors import BadCredentials
from hansa.kube.objects import Object

KUBECONFIG_KEYS = ("kubeconfig", "config", "admin-kubeconfig", "value")  # the last is what Cluster API writes


class SecretCredentials(Credentials):
    """Credentials from a Secret; `observe` is called with its newer versions."""

    def __init__(self, secret: Object, *, key: str = "", context: str = "") -> None:
        self._secret = secret
        super().__init__(lambda: login(self._secret, key=key, context=context))

    def observe(self, secret: Object) -> None:
        """Use a newer version of the Secret from the next request on."""
        if secret.raw("data") != self._secret.raw("data"):
            self._secret = secret
            self.expire()


def login(secret: Object, *, key: str = "", context: str = "") -> Login:
    """The login in a Secret: the kubeconfig under `key` (or one of the usual keys), else server, ca.crt and token."""
    data: dict[str, str] = secret.get("data") or {}
    origin = f"secret {secret.key}"
    found = key or next((usual for usual in KUBECONFIG_KEYS if usual in data), "")
    if found:
        if found not in data:
            raise BadCredentials(f"{origin} has no key {found}")
        text = base64_text(data[found], f"key {found} of {origin}")
        return kubeconfig.parse(text.read(), origin=text.origin, context=context).embedded()
    parts = {name: base64_text(value, f"key {name} of {origin}") for name, value in data.items()}
    if "server" not in parts or "token" not in parts:
        raise BadCredentials(f"{origin} has neither a kubeconfig nor the keys server and token")
    return _token_login(parts, origin)


def _token_login(parts: dict[str, Text], origin: str) -> Login:
    namespace = parts.get("namespace")
    return Login(
        server=parts["server"].read().decode(errors="replace").strip(),
        server_origin=parts["server"].origin,
        origin=origin,
        ca=parts.get("ca.crt"),
        token=parts["token"],
        namespace=namespace.read().decode(errors="replace") if namespace else "default",
    )
