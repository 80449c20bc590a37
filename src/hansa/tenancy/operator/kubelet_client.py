"""The kubelet client certificate of a tenant's API server, as the status of its VirtualCluster records it. Pure.

vn-agents know a tenant by it. It is recorded before the API server uses it, and the one before it stays, so that
calls succeed at any time of a renewal.
"""

from hansa.kube import certificates
from hansa.tenancy.api import KubeletClient, VirtualCluster
from hansa.tenancy.operator import pki
from hansa.tenancy.operator.pki import Pki

KEPT = 2  # certificates: the present one, and the former one


def due(vc: VirtualCluster, keys: Pki) -> KubeletClient | None:
    """What the status has to record before the API server uses these keys; None if it does."""
    have, ca = vc.status.kubelet_client, keys[pki.ROOT].certificate.decode()
    present = certificates.fingerprint(keys[pki.APISERVER].certificate)
    if (have.hashes[:1], have.ca) == ((present,), ca):
        return None
    former = [one for one in have.hashes if one != present] if have.ca == ca else []
    return KubeletClient((present, *former)[:KEPT], ca)
