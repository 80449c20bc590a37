"""Metadata of delegates and of other copies in targets: names, and labels and annotations that name the source."""

import hashlib
from typing import Final

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.model.pair import Key, Link
from hansa.model.translation.federation import labels, target_link

LONGEST_PREFIX: Final = 52  # characters of the proxy pod's name; with the hash it is a DNS label: the hostname of a pod
_DIGITS: Final = 10
# They describe the object in the source only.
_SOURCE_ONLY: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
_OURS: Final = (f"{keys.FEDERATION}/", "hansa.dev/")


def lower_name(key: Key, uid: str, _link: Link) -> NamespacedName:
    """The same namespace and name; a delegate's name has a hash of the proxy pod's uid."""
    if key.resource != resources.PODS:
        return NamespacedName(key.namespace, key.name)
    digest = hashlib.sha256(uid.encode()).hexdigest()[:_DIGITS]
    return NamespacedName(key.namespace, f"{key.name[:LONGEST_PREFIX].rstrip('-.')}-{digest}")


def is_own_annotation(key: str) -> bool:
    """Whether an annotation is ours or describes the object of one cluster only, so that it is never synced."""
    return key.startswith(_OURS) or key in _SOURCE_ONLY


def delegate(pod: Object, link: Link) -> Object:
    """A delegate's labels, all with our prefix, and its annotations."""
    return _with_parent(pod.with_metadata(labels=labels.of(pod.annotations).labels(pod.labels)), pod, link)


def copy(obj: Object, link: Link) -> Object:
    """The labels and annotations of a copy of any other kind."""
    return _with_parent(obj, obj, link)


def global_copy(obj: Object, link: Link) -> Object:
    """As `copy`, marked as a copy, so that it is not copied on to the targets of the target."""
    copied = copy(obj, link)
    return copied.with_metadata(annotations={**copied.annotations, keys.IS_DELEGATE: ""})


def _with_parent(copied: Object, obj: Object, link: Link) -> Object:
    source = target_link.of(link).source
    parents = {keys.PARENT_UID: obj.uid} | ({keys.PARENT_CLUSTER: source} if source else {})
    annotations = {key: value for key, value in obj.annotations.items() if not is_own_annotation(key)}
    annotations |= {keys.PARENT_NAMESPACE: obj.namespace, keys.PARENT_NAME: obj.name}
    own = {keys.HAS_FINALIZER, keys.GLOBAL_SERVICE, keys.ENDPOINTS_OF}
    kept = {key: value for key, value in copied.labels.items() if key not in own}
    return copied.with_metadata(labels=kept | parents, annotations=annotations)
