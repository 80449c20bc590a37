"""What the status records of the certificates by which vn-agents know a tenant's API server."""

import datetime

import pytest

import virtual_clusters
from hansa.kube import certificates
from hansa.tenancy import api
from hansa.tenancy.api import KubeletClient
from hansa.tenancy.operator import kubelet_client, pki
from hansa.tenancy.operator.pki import Identity, Pki

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
IDENTITY = Identity("ns-abc-vc", "vc", "cluster.local", "https://127.0.0.1:1", "https://127.0.0.1:1")


@pytest.fixture(scope="module")
def keys():
    return pki.complete(IDENTITY, {}, NOW)


def vc(recorded=None):
    status = {} if recorded is None else {"kubeletClient": {"hashes": recorded.hashes, "ca": recorded.ca}}
    return api.virtual_cluster(virtual_clusters.virtual_cluster("vc", "ns").with_fields(status=status))


def renewed(keys):
    """The same authority with another certificate of the API server."""
    pair = certificates.issue(keys[pki.ROOT], IDENTITY.subjects()[pki.APISERVER], NOW)
    return Pki({**keys.pairs, pki.APISERVER: pair}, keys.kubeconfigs)


def fingerprint(keys):
    return certificates.fingerprint(keys[pki.APISERVER].certificate)


def test_the_certificate_is_recorded_once(keys):
    recorded = kubelet_client.due(vc(), keys)
    assert recorded == KubeletClient((fingerprint(keys),), keys[pki.ROOT].certificate.decode())
    assert kubelet_client.due(vc(recorded), keys) is None


def test_in_a_renewal_the_present_and_the_former_one_hold(keys):
    second, third = renewed(keys), renewed(keys)
    both = kubelet_client.due(vc(kubelet_client.due(vc(), keys)), second)
    assert both.hashes == (fingerprint(second), fingerprint(keys))
    assert kubelet_client.due(vc(both), third).hashes == (fingerprint(third), fingerprint(second))


def test_with_another_authority_no_former_one_holds(keys):
    others = pki.complete(IDENTITY, {}, NOW)
    assert kubelet_client.due(vc(kubelet_client.due(vc(), keys)), others).hashes == (fingerprint(others),)
