"""One control plane is one tenant."""

from hansa.kube.objects import NamespacedName, Object
from hansa.tenancy.syncing.claims import Claims


def vc(name, day):
    metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": f"2026-01-{day:02}T00:00:00Z"}
    return Object.of({"apiVersion": "tenancy.x-k8s.io/v1alpha1", "kind": "VirtualCluster", "metadata": metadata})


OLD, NEW = vc("old", 1), vc("new", 2)


def test_of_two_claims_to_one_control_plane_the_older_wins_in_any_order():
    for first, second in ((OLD, NEW), (NEW, OLD)):
        claims = Claims()
        assert claims.claim("id", first) == first.key
        assert claims.claim("id", second) == OLD.key
        assert claims.claim("id", first) == OLD.key


def test_a_released_claim_passes_to_the_other_and_claims_of_other_control_planes_stay():
    claims = Claims()
    claims.claim("id", OLD)
    assert claims.claim("another", NEW) == NamespacedName("default", "new")
    claims.release(OLD.key)
    assert claims.claim("id", NEW) == NEW.key
