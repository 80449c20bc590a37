"""What a user says about the webhook, checked where it enters."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hansa.admission import configuration, serving
from hansa.admission.configuration import Address, Service
from hansa.model import keys
from hansa.runtime import errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One webhook of one upper cluster. Without a pair the certificate is self-made; `port` 0 is a free one.

    The API server reaches it by `service`, by `url`, or else by host and port.
    """

    kubeconfig: Path | None = None
    host: str = "0.0.0.0"  # noqa: S104 - the API server is elsewhere
    port: int = 8080
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    steering_keys: frozenset[str] = frozenset({keys.CLUSTER_ID})
    service: Service | None = None
    url: str = ""
    ca_bundle: bytes = b""
    failure_policy: str = "Fail"
    name: str = configuration.DEFAULT_NAME
    is_installed: bool = True

    def __post_init__(self) -> None:
        if bool(self.certificate) != bool(self.key):
            raise errors.HansaError("--tlscert and --tlskey belong together: give both, or none for a self-made pair")
        if self.service and self.url:
            raise errors.HansaError("--service and --url exclude each other: the API server takes one of them")
        if self.url and (urlsplit(self.url).scheme != "https" or not urlsplit(self.url).hostname):
            raise errors.HansaError(f'--url "{self.url}" must look like https://HOST:PORT{serving.PATH}')
        if self.is_installed and not self.service and not self.url and self._is_anywhere():
            raise errors.HansaError(
                f"how does the API server reach a webhook on {self.host}? Give --service NAMESPACE/NAME,"
                f" --url https://HOST:PORT{serving.PATH}, one --address, or --no-install"
            )

    def address(self, port: int) -> Address:
        """How the API server reaches us on this port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.service or self.url or f"https://{host}:{port}{serving.PATH}"

    def names(self) -> tuple[str, ...]:
        """The names that a self-made certificate must be for."""
        if self.service:
            return self.service.host, f"{self.service.host}.cluster.local"
        return (urlsplit(self.url).hostname or self.host,)

    def _is_anywhere(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False  # a name


def service(text: str) -> Service:
    """Read NAMESPACE/NAME or NAMESPACE/NAME:PORT."""
    where, _, port = text.partition(":")
    namespace, slash, name = where.partition("/")
    if not (slash and namespace and name and (port.isdecimal() or not port)):
        raise errors.HansaError(f'"{text}" is not of the form NAMESPACE/NAME or NAMESPACE/NAME:PORT')
    return Service(namespace, name, int(port or 443))
