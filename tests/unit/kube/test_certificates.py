"""Certificates, checked by the same rules that a strict TLS client has."""

import datetime

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from hansa.kube import certificates
from hansa.kube.certificates import Subject

NOW = datetime.datetime(2030, 1, 2, tzinfo=datetime.UTC)


def verify(pair, ca, name, when=NOW):
    store = Store([x509.load_pem_x509_certificate(ca.certificate)])
    verifier = PolicyBuilder().store(store).time(when).build_server_verifier(x509.DNSName(name))
    verifier.verify(x509.load_pem_x509_certificate(pair.certificate), [])


def test_a_server_certificate_is_trusted_for_its_names_only():
    ca = certificates.authority("test", NOW)
    pair = certificates.issue(ca, Subject("server", names=("kubernetes.default", "10.0.0.1")), NOW)
    verify(pair, ca, "kubernetes.default")
    with pytest.raises(VerificationError):
        verify(pair, ca, "somewhere.else")


def test_a_certificate_of_another_authority_is_not_trusted():
    ca, other = certificates.authority("test", NOW), certificates.authority("test", NOW)
    pair = certificates.issue(ca, Subject("server", names=("localhost",)), NOW)
    with pytest.raises(VerificationError):
        verify(pair, other, "localhost")


def test_a_certificate_is_valid_at_once_on_a_machine_whose_clock_is_a_little_behind():
    ca = certificates.authority("test", NOW)
    pair = certificates.issue(ca, Subject("server", names=("localhost",)), NOW)
    verify(pair, ca, "localhost", when=NOW - datetime.timedelta(minutes=4))


def test_a_client_certificate_has_the_user_as_common_name_and_groups_as_organizations():
    ca = certificates.authority("test", NOW)
    pair = certificates.issue(ca, Subject("system:node:n1", ("system:nodes",)), NOW)
    subject = x509.load_pem_x509_certificate(pair.certificate).subject.rfc4514_string()
    assert subject == "CN=system:node:n1,O=system:nodes"


def test_a_key_pair_never_shows_its_key():
    assert "PRIVATE" not in repr(certificates.signing_pair())


def test_a_certificate_expires_after_its_lifetime():
    ca = certificates.authority("test", NOW)
    pair = certificates.issue(ca, Subject("s", names=("localhost",)), NOW, lifetime=datetime.timedelta(days=2))
    verify(pair, ca, "localhost", when=NOW + datetime.timedelta(days=1))
    with pytest.raises(VerificationError):
        verify(pair, ca, "localhost", when=NOW + datetime.timedelta(days=3))
