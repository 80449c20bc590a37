"""The keys of a tenant's control plane, as they lie in Secrets of its root namespace. Pure: Secrets in, Secrets out.

The authority and the key of service accounts are made once and never again; certificates are made anew before they end.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from hansa.kube import certificates
from hansa.kube.certificates import KeyPair, Subject
from hansa.kube.objects import Object
from hansa.runtime.errors import HansaError

ROOT, APISERVER, ETCD, FRONT_PROXY = "root-ca", "apiserver-ca", "etcd-ca", "front-proxy-ca"
SERVICE_ACCOUNTS = "serviceaccount-rsa"
CONTROLLER_MANAGER, ADMIN = "controller-manager-kubeconfig", "admin-kubeconfig"
SECRETS = (ROOT, APISERVER, ETCD, FRONT_PROXY, SERVICE_ACCOUNTS, CONTROLLER_MANAGER, ADMIN)
KUBECONFIGS = (CONTROLLER_MANAGER, ADMIN)

CA_NAME = "kubernetes"
CONTEXT = "default"
RSA_BITS = 2048
RENEWED = 1 / 3  # a certificate is made anew when less than this share of its life is left


class BadSecret(HansaError):
    """A Secret that may not be made anew cannot be read."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the certificates are for. `names` and `etcd_names` are those besides the usual ones."""

    root: str
    cluster: str
    domain: str
    server: str
    inner_server: str
    names: tuple[str, ...] = ()
    etcd_names: tuple[str, ...] = ()
    lifetime: timedelta = timedelta(days=365)

    def subjects(self) -> dict[str, Subject]:
        """Who presents which certificate, by the name of its Secret."""
        service = (
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            f"kubernetes.default.svc.{self.domain}",
        )
        names = tuple(dict.fromkeys(("localhost", "127.0.0.1", *service, self.cluster, *self.names)))
        # The API server presents its own certificate to etcd and to nodes' agents, which know tenants by this name.
        return {
            APISERVER: Subject(self.root, (), names, is_both=True),
            ETCD: Subject("kube-etcd", (), ("localhost", "127.0.0.1", "etcd", *self.etcd_names), is_both=True),
            FRONT_PROXY: Subject("front-proxy-client"),
            CONTROLLER_MANAGER: Subject("system:kube-controller-manager"),
            ADMIN: Subject("admin", ("system:masters",)),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Pki:
    """All keys of one control plane, by the names of their Secrets."""

    pairs: Mapping[str, KeyPair]
    kubeconfigs: Mapping[str, bytes]

    def __getitem__(self, secret: str) -> KeyPair:
        return self.pairs[secret]


def complete(identity: Identity, found: Mapping[str, Object], now: datetime) -> Pki:
    """All keys: those of the Secrets, and new ones for what is missing, ends soon or says another thing."""
    root = _kept(found, ROOT) or certificates.authority(CA_NAME, now)
    accounts = _kept(found, SERVICE_ACCOUNTS, is_certificate=False) or _rsa_pair()
    pairs = {ROOT: root, SERVICE_ACCOUNTS: accounts}
    for name, subject in identity.subjects().items():
        have = _pair_of_kubeconfig(found.get(name)) if name in KUBECONFIGS else _pair(found.get(name))
        if have is None or not _is_good(have, root, subject, now):
            have = certificates.issue(root, subject, now, lifetime=identity.lifetime)
        pairs[name] = have
    servers = {CONTROLLER_MANAGER: identity.inner_server, ADMIN: identity.server}
    return Pki(pairs, {name: kubeconfig(identity.cluster, servers[name], root, pairs[name]) for name in KUBECONFIGS})


def secrets(pki: Pki, root: str) -> list[Object]:
    """The Secrets as they should be."""
    tls = {
        name: ("kubernetes.io/tls", {"tls.crt": pki[name].certificate, "tls.key": pki[name].key})
        for name in SECRETS
        if name not in KUBECONFIGS
    }
    opaque = {name: ("Opaque", {name: pki.kubeconfigs[name]}) for name in KUBECONFIGS}
    return [secret(root, name, kind, data) for name, (kind, data) in (tls | opaque).items()]


def secret(namespace: str, name: str, kind: str, data: Mapping[str, bytes]) -> Object:
    """A Secret."""
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "type": kind,
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
    )


def kubeconfig(cluster: str, server: str, root: KeyPair, client: KeyPair) -> bytes:
    """A kubeconfig with one cluster, one user and the context `default`, which verifies the server."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": cluster, "cluster": {"server": server, "certificate-authority-data": _b64(root.certificate)}}
        ],
        "users": [
            {
                "name": cluster,
                "user": {"client-certificate-data": _b64(client.certificate), "client-key-data": _b64(client.key)},
            }
        ],
        "contexts": [{"name": CONTEXT, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": CONTEXT,
    }
    return yaml.safe_dump(content, sort_keys=False).encode()


def _kept(found: Mapping[str, Object], name: str, *, is_certificate: bool = True) -> KeyPair | None:
    """A pair that may never be made anew behind people's backs: without it, all that it signed is worth nothing."""
    if name not in found:
        return None
    pair = _pair(found[name])
    try:
        if pair is None:
            raise ValueError("it lacks tls.crt or tls.key")
        # Proving that the numbers of an RSA key fit takes as long as all else that is looked at.
        serialization.load_pem_private_key(pair.key, password=None, unsafe_skip_rsa_key_validation=True)
        if is_certificate:
            _certificate(pair)
    except ValueError as error:
        raise BadSecret(
            f"secret {found[name].key} cannot be used ({error}); put it back as it was, or delete it to have"
            " a new one, which cuts off everybody who holds what the old one signed"
        ) from None
    return pair


def _is_good(pair: KeyPair, root: KeyPair, subject: Subject, now: datetime) -> bool:
    try:
        certificate = _certificate(pair)
        key = serialization.load_pem_private_key(pair.key, password=None)
        certificate.verify_directly_issued_by(_certificate(root))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return (
        key.public_key() == certificate.public_key()
        and _due(certificate, now) > 0
        and set(subject.names) <= _names(certificate)
    )


def _due(certificate: x509.Certificate, now: datetime) -> float:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return (certificate.not_valid_after_utc - life * RENEWED - now).total_seconds()


def _names(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in names}


def _pair(found: Object | None) -> KeyPair | None:
    data = _data(found)
    return KeyPair(data["tls.crt"], data["tls.key"]) if {"tls.crt", "tls.key"} <= data.keys() else None


def _pair_of_kubeconfig(found: Object | None) -> KeyPair | None:
    data = _data(found)
    try:
        user = yaml.safe_load(data[found.name])["users"][0]["user"] if found else {}
        return KeyPair(base64.b64decode(user["client-certificate-data"]), base64.b64decode(user["client-key-data"]))
    except (KeyError, IndexError, TypeError, ValueError, yaml.YAMLError):
        return None


def _data(found: Object | None) -> dict[str, bytes]:
    data: dict[str, str] = (found.get("data") if found else None) or {}
    return {key: base64.b64decode(value) for key, value in data.items()}


def _certificate(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def _rsa_pair() -> KeyPair:
    """Who verifies tokens elsewhere expects RSA."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return KeyPair(public, private)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
