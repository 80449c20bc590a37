"""Creates certificate authorities and certificates. Pure: bytes in, bytes out; files are left to callers."""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=3650)
# Clocks of machines differ a little: a new certificate must be valid at once on all of them.
BACKDATED = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, repr=False)
class KeyPair:
    """A key and the certificate (or public key) that belongs to it, as PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a certificate: a server if it has names, otherwise a client; `is_both` for a server and client."""

    common_name: str
    organizations: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    is_both: bool = False


def authority(common_name: str, now: datetime) -> KeyPair:
    """A new certificate authority."""
    key = _new_key()
    name = _name(Subject(common_name))
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    builder = (
        _builder(name, name, key.public_key(), now, LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
    )
    return KeyPair(_pem(builder.sign(key, hashes.SHA256())), _key_pem(key))


def issue(ca: KeyPair, subject: Subject, now: datetime, *, lifetime: timedelta = LIFETIME) -> KeyPair:
    """A certificate for a server or a client, signed by the authority."""
    ca_key = serialization.load_pem_private_key(ca.key, password=None)
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey)
    issuer = x509.load_pem_x509_certificate(ca.certificate).subject
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    key = _new_key()
    server, client = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
    purposes = [server, client] if subject.is_both else [server if subject.names else client]
    usage = x509.KeyUsage(True, False, True, False, False, False, False, False, False)
    builder = (
        _builder(_name(subject), issuer, key.public_key(), now, lifetime)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(issuer_id, critical=False)
    )
    if subject.names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_alternative(n) for n in subject.names]), critical=False
        )
    return KeyPair(_pem(builder.sign(ca_key, hashes.SHA256())), _key_pem(key))


def request(subject: Subject) -> KeyPair:
    """A new key and, in place of a certificate, the signing request of a server with these names."""
    key = _new_key()
    names = x509.SubjectAlternativeName([_alternative(name) for name in subject.names])
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(subject)).add_extension(names, critical=False)
    signed = builder.sign(key, hashes.SHA256())
    return KeyPair(signed.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def validity(certificate: bytes) -> tuple[datetime, datetime]:
    """The first and the last moment at which a certificate is valid. Raises ValueError if it is not one."""
    read = x509.load_pem_x509_certificate(certificate)
    return read.not_valid_before_utc, read.not_valid_after_utc


def names(certificate: bytes) -> set[str]:
    """The names and addresses of a server's certificate. Raises ValueError if it is not one."""
    read = x509.load_pem_x509_certificate(certificate)
    try:
        found = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


def fingerprint(certificate: bytes) -> str:
    """The SHA-256 of a certificate, in hexadecimal digits."""
    return x509.load_pem_x509_certificate(certificate).fingerprint(hashes.SHA256()).hex()


def bundle(data: bytes) -> bytes:
    """PEM certificates, without anything else that the data has, such as a key. Raises ValueError if there are none."""
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in x509.load_pem_x509_certificates(data))


def signing_pair() -> KeyPair:
    """A key pair without certificate, to sign service account tokens."""
    key = _new_key()
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return KeyPair(public, _key_pem(key))


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(subject: Subject) -> x509.Name:
    parts = [(NameOID.ORGANIZATION_NAME, organization) for organization in subject.organizations]
    parts += [(NameOID.COMMON_NAME, subject.common_name)] if subject.common_name else []
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])


def _builder(
    name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
