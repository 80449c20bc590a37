"""The keys of a control plane: which are kept, which are renewed, and when."""

import base64
import dataclasses
import datetime

import pytest
import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from hansa.kube import certificates
from hansa.kube.certificates import Subject
from hansa.tenancy.operator import cluster_versions, pki
from hansa.tenancy.operator.pki import Identity

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
IDENTITY = Identity(
    root="default-abcdef-vc",
    cluster="vc",
    domain="cluster.local",
    server="https://127.0.0.1:20001",
    inner_server="https://10.0.0.1:6443",
    names=("10.224.0.1",),
    lifetime=30 * DAY,
)


def stored(keys):
    return {one.name: one for one in pki.secrets(keys, IDENTITY.root)}


@pytest.fixture(scope="module")
def keys():
    return pki.complete(IDENTITY, {}, NOW)


def test_what_is_there_and_good_stays(keys):
    assert pki.complete(IDENTITY, stored(keys), NOW + 10 * DAY) == keys


def test_certificates_are_made_anew_before_they_end_and_the_authority_stays(keys):
    later = pki.complete(IDENTITY, stored(keys), NOW + 21 * DAY)
    assert later[pki.ROOT] == keys[pki.ROOT]
    assert later[pki.SERVICE_ACCOUNTS] == keys[pki.SERVICE_ACCOUNTS]
    for name in (pki.APISERVER, pki.ETCD, pki.FRONT_PROXY, pki.CONTROLLER_MANAGER, pki.ADMIN):
        assert later[name] != keys[name]
        ends = x509.load_pem_x509_certificate(later[name].certificate).not_valid_after_utc
        assert ends == NOW + 51 * DAY


def test_another_address_is_another_server_certificate_only(keys):

    moved = pki.complete(dataclasses.replace(IDENTITY, names=("10.99.0.1",)), stored(keys), NOW)
    assert moved[pki.APISERVER] != keys[pki.APISERVER]
    assert moved[pki.ADMIN] == keys[pki.ADMIN]


@pytest.mark.parametrize("secret", [pki.APISERVER, pki.ADMIN])
def test_a_broken_certificate_is_replaced(keys, secret):
    found = stored(keys)
    data = {name: base64.b64encode(b"nonsense").decode() for name in found[secret].get("data")}
    found[secret] = found[secret].with_fields(data=data)
    assert pki.complete(IDENTITY, found, NOW)[secret] != keys[secret]


def test_a_certificate_of_another_authority_is_replaced(keys):
    found = stored(keys)
    other = certificates.issue(certificates.authority("x", NOW), Subject("front-proxy-client"), NOW)
    data = {"tls.crt": base64.b64encode(other.certificate).decode(), "tls.key": base64.b64encode(other.key).decode()}
    found[pki.FRONT_PROXY] = found[pki.FRONT_PROXY].with_fields(data=data)
    assert pki.complete(IDENTITY, found, NOW)[pki.FRONT_PROXY].certificate != other.certificate


@pytest.mark.parametrize("secret", [pki.ROOT, pki.SERVICE_ACCOUNTS])
def test_an_invalid_ca_or_service_account_key_is_reported_and_not_replaced(keys, secret):
    found = stored(keys)
    found[secret] = found[secret].with_fields(data={"tls.crt": "", "tls.key": ""})
    with pytest.raises(pki.BadSecret, match=f"{IDENTITY.root}/{secret} is invalid"):
        pki.complete(IDENTITY, found, NOW)


def test_kubeconfigs_verify_the_server_and_bracket_no_name(keys):
    for name, server in ((pki.ADMIN, IDENTITY.server), (pki.CONTROLLER_MANAGER, IDENTITY.inner_server)):
        config = yaml.safe_load(keys.kubeconfigs[name])
        cluster = config["clusters"][0]["cluster"]
        assert cluster == {
            "server": server,
            "certificate-authority-data": base64.b64encode(keys[pki.ROOT].certificate).decode(),
        }
        assert [config["clusters"][0]["name"], config["current-context"]] == ["vc", "default"]


def test_nothing_shows_a_key(keys):
    assert "PRIVATE" not in repr(keys)


def test_no_certificate_of_the_tenants_authority_opens_etcd(keys):
    roots = {name: x509.load_pem_x509_certificate(keys[name].certificate) for name in (pki.ROOT, pki.ETCD_ROOT)}
    for name in (pki.ETCD_SERVER, pki.ETCD_CLIENT):
        certificate = x509.load_pem_x509_certificate(keys[name].certificate)
        certificate.verify_directly_issued_by(roots[pki.ETCD_ROOT])
        with pytest.raises((ValueError, InvalidSignature)):
            certificate.verify_directly_issued_by(roots[pki.ROOT])


def test_the_sample_lets_etcd_trust_its_own_authority_only():
    for sample in cluster_versions.samples():
        etcd, server = (sample.spec[name]["statefulset"]["spec"]["template"]["spec"] for name in ("etcd", "apiServer"))
        secrets = {one["secret"]["secretName"] for one in etcd["volumes"] if "secret" in one}
        assert secrets == {pki.ETCD_ROOT, pki.ETCD_SERVER}
        assert "--etcd-certfile=/etc/kubernetes/pki/etcd-client/tls.crt" in server["containers"][0]["args"]
