"""Settings of the webhook program, validated when they are made from its flags."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hansa.admission import configuration, serving
from hansa.admission.configuration import Address, Service
from hansa.kube.objects import NamespacedName
from hansa.model import keys
from hansa.runtime import errors


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """The webhook of one upper cluster.

    Without `certificate` and `key` the certificate is that of `secret`, which replicas share, or a self-signed one;
    `port` 0 takes any free port. The API server reaches the webhook by `service`, by `url`, or else by host and port.
    """

    kubeconfig: Path | None = None
    host: str = "0.0.0.0"  # noqa: S104 - the API server is elsewhere
    port: int = 8080
    certificate: Path | None = None
    key: Path | None = None
    secret: NamespacedName | None = None
    client_ca: Path | None = None
    upper_label_keys: frozenset[str] = frozenset({keys.CLUSTER_ID})
    service: Service | None = None
    url: str = ""
    ca_bundle: bytes = b""
    failure_policy: str = "Fail"
    name: str = configuration.DEFAULT_NAME
    owner: str = ""  # a ClusterRole, with which the configuration is deleted
    is_installed: bool = True
    metrics_address: str = ""

    def __post_init__(self) -> None:
        if bool(self.certificate) != bool(self.key):
            raise errors.HansaError(
                "--tlscert and --tlskey must be given together, or neither for a self-signed certificate"
            )
        if self.certificate and self.secret:
            raise errors.HansaError("--tlscert and --cert-secret are mutually exclusive: give one of them")
        if self.service and self.url:
            raise errors.HansaError("--service and --url are mutually exclusive: give one of them")
        if self.url and (urlsplit(self.url).scheme != "https" or not urlsplit(self.url).hostname):
            raise errors.HansaError(f'--url "{self.url}" must look like https://HOST:PORT{serving.PATH}')
        if self.is_installed and not self.service and not self.url and self._listens_on_all():
            raise errors.HansaError(
                f"the API server cannot reach a webhook at {self.host}: give --service NAMESPACE/NAME,"
                f" --url https://HOST:PORT{serving.PATH}, another --address, or --no-install"
            )

    def address(self, port: int) -> Address:
        """The address by which the API server reaches the webhook on this port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.service or self.url or f"https://{host}:{port}{serving.PATH}"

    def names(self) -> tuple[str, ...]:
        """The names in a self-signed certificate."""
        if self.service:
            return self.service.host, f"{self.service.host}.cluster.local"
        return (urlsplit(self.url).hostname or self.host,)

    def _listens_on_all(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False  # a host name


def namespaced_name(text: str) -> NamespacedName:
    """Parse NAMESPACE/NAME."""
    namespace, slash, name = text.partition("/")
    if not (slash and namespace and name) or "/" in name:
        raise errors.HansaError(f'"{text}" is not of the form NAMESPACE/NAME')
    return NamespacedName(namespace, name)


def service(text: str) -> Service:
    """Parse NAMESPACE/NAME or NAMESPACE/NAME:PORT."""
    where, _, port = text.partition(":")
    namespace, slash, name = where.partition("/")
    if not (slash and namespace and name and (port.isdecimal() or not port)):
        raise errors.HansaError(f'"{text}" is not of the form NAMESPACE/NAME or NAMESPACE/NAME:PORT')
    return Service(namespace, name, int(port or 443))
