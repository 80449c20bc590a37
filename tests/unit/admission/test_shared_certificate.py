"""The certificate that replicas of a webhook share: when it is issued, renewed, and by which authority."""

import datetime

import pytest
from cryptography import x509

from hansa.admission import shared_certificate
from hansa.admission.shared_certificate import AUTHORITY_KEY, BUNDLE, CERTIFICATE, KEY
from hansa.kube import certificates

NAMES = ("webhook.hansa-system.svc", "webhook.hansa-system.svc.cluster.local")
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def after(stored, days, names=NAMES):
    return shared_certificate.renewed(stored, names, NOW + datetime.timedelta(days=days))


@pytest.fixture(scope="module")
def stored():
    return shared_certificate.renewed({}, NAMES, NOW)


def authorities(bundle):
    return x509.load_pem_x509_certificates(bundle)


def test_an_empty_secret_gets_an_authority_and_a_certificate_for_the_names(stored):
    assert set(stored) == {BUNDLE, AUTHORITY_KEY, CERTIFICATE, KEY}
    assert certificates.names(stored[CERTIFICATE]) == set(NAMES)
    [authority] = authorities(stored[BUNDLE])
    x509.load_pem_x509_certificate(stored[CERTIFICATE]).verify_directly_issued_by(authority)


def test_a_certificate_is_renewed_in_time_by_the_same_authority(stored):
    assert after(stored, 200) is None
    following = after(stored, 300)
    assert (following[BUNDLE], following[AUTHORITY_KEY]) == (stored[BUNDLE], stored[AUTHORITY_KEY])
    assert following[CERTIFICATE] != stored[CERTIFICATE]


def test_other_names_and_damaged_content_are_due(stored):
    assert after(stored, 1, names=("other.hansa-system.svc",)) is not None
    for key in (BUNDLE, AUTHORITY_KEY, CERTIFICATE, KEY):
        assert after(stored | {key: b""}, 1) is not None
    assert after(stored | {CERTIFICATE: b"nonsense"}, 1) is not None
    assert len(authorities(after(stored | {BUNDLE: b"nonsense", CERTIFICATE: b""}, 1)[BUNDLE])) == 1


def test_a_new_authority_is_trusted_together_with_the_former_one(stored):
    following = after(stored, 9.5 * 365)
    new, former = authorities(following[BUNDLE])
    assert [former] == authorities(stored[BUNDLE])
    x509.load_pem_x509_certificate(following[CERTIFICATE]).verify_directly_issued_by(new)
