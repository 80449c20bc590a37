"""Certificates, keys and kubeconfigs of a tenant's control plane, stored as Secrets of its root namespace.

Pure: Secrets in, Secrets out. The CAs and the service account key are created once and never replaced; certificates are
renewed before they expire. Reading and writing Secrets is left to `secrets`.
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
# The authority that etcd trusts signs nothing else: with that of the tenant, the tenant's administrator could get a
# client certificate by a request. `etcd-ca` is of the tenant's authority, for ClusterVersions that mount it.
ETCD_ROOT, ETCD_SERVER, ETCD_CLIENT = "etcd-root-ca", "etcd-server", "etcd-client"
SERVICE_ACCOUNTS = "serviceaccount-rsa"
CONTROLLER_MANAGER, ADMIN = "controller-manager-kubeconfig", "admin-kubeconfig"
SECRETS = (
    *(ROOT, APISERVER, ETCD, FRONT_PROXY, ETCD_ROOT, ETCD_SERVER, ETCD_CLIENT),
    *(SERVICE_ACCOUNTS, CONTROLLER_MANAGER, ADMIN),
)
KUBECONFIGS = (CONTROLLER_MANAGER, ADMIN)

CA_NAME, ETCD_CA_NAME = "kubernetes", "etcd"
CONTEXT = "default"
RSA_BITS = 2048
RENEWED = 1 / 3  # a certificate is renewed when less than this share of its lifetime is left


class BadSecret(HansaError):
    """A Secret that must not be replaced (the CA, the service account key) cannot be read."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The subjects and the lifetime of certificates. `names` and `etcd_names` are SANs besides the default ones.

    `server_name` verifies a `server` that is no SAN, such as a node that may be replaced.
    """

    root: str
    cluster: str
    domain: str
    server: str
    inner_server: str
    names: tuple[str, ...] = ()
    etcd_names: tuple[str, ...] = ()
    server_name: str = ""
    lifetime: timedelta = timedelta(days=365)

    def subjects(self) -> dict[str, Subject]:
        """The subject of each certificate by the name of its Secret."""
        service = (
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            f"kubernetes.default.svc.{self.domain}",
        )
        names = tuple(dict.fromkeys(("localhost", "127.0.0.1", *service, self.cluster, *self.names)))
        # The API server is a client of vn-agents with its own certificate, whose hash they know (`kubelet_client`).
        etcd = Subject("kube-etcd", (), ("localhost", "127.0.0.1", "etcd", *self.etcd_names), is_both=True)
        return {
            APISERVER: Subject(self.root, (), names, is_both=True),
            ETCD: etcd,
            ETCD_SERVER: etcd,
            ETCD_CLIENT: Subject("kube-apiserver-etcd-client"),
            FRONT_PROXY: Subject("front-proxy-client"),
            CONTROLLER_MANAGER: Subject("system:kube-controller-manager"),
            ADMIN: Subject("admin", ("system:masters",)),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Pki:
    """All key pairs and kubeconfigs of one control plane by the names of their Secrets."""

    pairs: Mapping[str, KeyPair]
    kubeconfigs: Mapping[str, bytes]

    def __getitem__(self, secret: str) -> KeyPair:
        return self.pairs[secret]


def complete(identity: Identity, found: Mapping[str, Object], now: datetime) -> Pki:
    """All keys: those in the Secrets, and new ones where one is missing, expires soon or lacks a SAN."""
    root = _kept(found, ROOT) or certificates.authority(CA_NAME, now)
    accounts = _kept(found, SERVICE_ACCOUNTS, is_certificate=False) or _rsa_pair()
    etcd_root = _kept(found, ETCD_ROOT) or certificates.authority(ETCD_CA_NAME, now)
    pairs = {ROOT: root, ETCD_ROOT: etcd_root, SERVICE_ACCOUNTS: accounts}
    for name, subject in identity.subjects().items():
        signer = etcd_root if name in (ETCD_SERVER, ETCD_CLIENT) else root
        have = _pair_of_kubeconfig(found.get(name)) if name in KUBECONFIGS else _pair(found.get(name))
        if have is None or not _is_good(have, signer, subject, now):
            have = certificates.issue(signer, subject, now, lifetime=identity.lifetime)
        pairs[name] = have
    inner = kubeconfig(identity.cluster, identity.inner_server, root, pairs[CONTROLLER_MANAGER])
    admin = kubeconfig(identity.cluster, identity.server, root, pairs[ADMIN], server_name=identity.server_name)
    return Pki(pairs, {CONTROLLER_MANAGER: inner, ADMIN: admin})


def secrets(pki: Pki, root: str) -> list[Object]:
    """The desired Secrets."""
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


def kubeconfig(cluster: str, server: str, root: KeyPair, client: KeyPair, *, server_name: str = "") -> bytes:
    """A kubeconfig with one cluster, one user and the context `default`; it verifies the server's certificate."""
    named = {"tls-server-name": server_name} if server_name else {}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": cluster,
                "cluster": {"server": server, "certificate-authority-data": _b64(root.certificate), **named},
            }
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
    """A pair that is never replaced automatically: all that it signed would become invalid."""
    if name not in found:
        return None
    pair = _pair(found[name])
    try:
        if pair is None:
            raise ValueError("it lacks tls.crt or tls.key")
        # Validating an RSA key takes as long as all other checks of a reconcile together.
        serialization.load_pem_private_key(pair.key, password=None, unsafe_skip_rsa_key_validation=True)
        if is_certificate:
            _certificate(pair)
    except ValueError as error:
        raise BadSecret(
            f"Secret {found[name].key} is invalid ({error}); restore it, or delete it to create a new one, which makes"
            " all certificates, kubeconfigs or tokens signed with the old one invalid"
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
    """An RSA key pair: other verifiers of service account tokens expect RSA."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return KeyPair(public, private)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
