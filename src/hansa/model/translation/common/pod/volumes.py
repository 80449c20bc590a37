"""Steps on a pod's volumes."""

from hansa.kube.objects import Object
from hansa.model import references
from hansa.model.pair import Link
from hansa.model.translation.common.pod.spec import Spec, with_volumes


def claim_ephemeral_volumes(spec: Spec, pod: Object, _link: Link) -> Spec:
    """Name the claims of ephemeral volumes: they were made above, their copies are not owned by the pod below."""

    def volume(one: Spec) -> Spec:
        if "ephemeral" not in one:
            return one
        claim = references.ephemeral_claim(pod.name, one["name"])
        return {"name": one["name"], "persistentVolumeClaim": {"claimName": claim}}

    return with_volumes(spec, volume)
