"""Steps on a pod's volumes."""

from hansa.kube.objects import Object
from hansa.model import references
from hansa.model.pair import Link
from hansa.model.translation.common.pod.spec import Spec, with_volumes


def claim_ephemeral_volumes(spec: Spec, pod: Object, _link: Link) -> Spec:
    """Refer to the claims of ephemeral volumes by name: the upper cluster creates them, and their copies are synced."""

    def volume(one: Spec) -> Spec:
        if "ephemeral" not in one:
            return one
        claim = references.ephemeral_claim(pod.name, one["name"])
        return {"name": one["name"], "persistentVolumeClaim": {"claimName": claim}}

    return with_volumes(spec, volume)
