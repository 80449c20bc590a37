"""Which tenant a client certificate is of, and when it is of none."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

import simulation
import virtual_clusters
from hansa.app.vn_agent import tenant_of
from hansa.control import store
from hansa.kube import certificates, watching
from hansa.kube.certificates import Subject
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.tenants.directory import Directory

DAY = datetime.timedelta(days=1)
A, B = (certificates.authority("kubernetes", simulation.START) for _ in range(2))
SUBJECT = Subject("default-0-a", names=("kubernetes",), is_both=True)


def issued(authority, *, lifetime=DAY):
    """A certificate as the TLS handshake gives it, and its hash."""
    pem = certificates.issue(authority, SUBJECT, simulation.START, lifetime=lifetime).certificate
    der = x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)
    return der, certificates.fingerprint(pem)


MINE, OLD, OTHER, UNKNOWN = issued(A), issued(A), issued(B), issued(A)


def vc(name, authority, *hashes, version=1, **metadata):
    status = {
        "phase": "Running",
        "clusterNamespace": f"default-0-{name}",
        "kubeletClient": {"hashes": list(hashes), "ca": authority.certificate.decode()},
    }
    made = virtual_clusters.virtual_cluster(name, "default")
    return made.with_metadata(uid=name, resource_version=str(version), **metadata).with_fields(status=status)


def played(*vcs, then=lambda _cache, _world: None, patience=120.0):
    """Ask for each certificate after `then`; the tenant's key, or the status of the refusal."""

    async def main(world):
        cache = store.Store("vcs", clock=world.clock, metrics=world.metrics, patience=patience)
        gone = []
        directory = Directory(cache, tenant_of, gone=gone.append, clock=world.clock)
        for change in (watching.Restarted(), *map(watching.Added, vcs), watching.Synced("10")):
            cache.apply(change)
        if (waiting := then(cache, world)) is not None:
            await waiting
        return [_answer(directory, der) for der, _ in (MINE, OLD, OTHER, UNKNOWN, (b"", ""))], gone

    return simulation.run(main)


def _answer(directory, der):
    try:
        return directory.tenant(der).key
    except Refusal as error:
        return error.status


def test_a_tenant_is_known_by_its_recorded_certificates_the_former_one_included():
    answers, _ = played(vc("a", A, MINE[1], OLD[1]), vc("b", B, OTHER[1]))
    assert answers == ["default-0-a", "default-0-a", "default-0-b", 401, 401]


def test_a_recorded_hash_is_not_enough_the_tenants_own_authority_must_have_issued_it():
    answers, _ = played(vc("a", A, MINE[1], OTHER[1]))
    assert answers == ["default-0-a", 401, 401, 401, 401]


def test_a_hash_that_two_tenants_have_is_of_neither():
    answers, _ = played(vc("a", A, MINE[1]), vc("b", A, MINE[1]))
    assert answers[0] == 401


def test_a_tenant_that_is_gone_or_being_deleted_is_refused_at_once_and_its_sessions_end():
    def is_deleted(cache, _world):
        cache.apply(watching.Deleted(vc("a", A, MINE[1], version=11)))

    def is_deleting(cache, world):
        cache.apply(watching.Modified(vc("a", A, MINE[1], version=11, deletion_timestamp=world.clock.wall())))

    for then in (is_deleted, is_deleting):
        answers, gone = played(vc("a", A, MINE[1]), vc("b", B, OTHER[1]), then=then)
        assert answers == [401, 401, "default-0-b", 401, 401]
        assert gone == ["default-0-a"]


def test_a_certificate_that_has_expired_is_refused():
    def wait(_cache, world):
        return world.clock.sleep(2 * DAY.total_seconds())

    answers, _ = played(vc("a", A, MINE[1]), then=wait)
    assert answers[0] == 401


def test_nobody_is_known_while_the_meta_cluster_is_unreachable_for_long():
    async def wait(cache, world):
        cache.freshness.interrupt("no answer")
        await world.clock.sleep(130)

    assert played(vc("a", A, MINE[1]), then=wait)[0] == [503] * 5


@pytest.mark.parametrize("ca", ["", "nonsense"])
def test_a_tenant_without_a_readable_authority_is_none_and_harms_no_other(ca):
    bad = vc("b", B, OTHER[1])
    bad = bad.with_fields(status=bad.status | {"kubeletClient": {"hashes": [OTHER[1]], "ca": ca}})
    assert played(vc("a", A, MINE[1]), bad)[0] == ["default-0-a", 401, 401, 401, 401]
