"""Sources, targets and cluster summaries as typed values, and the names that follow from them.

The API server validates them by the schemas in `crds/`. Both scopes of a kind have one type: the namespace of a
ClusterSource or ClusterTarget is empty.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

import msgspec

from hansa.kube.objects import Malformed, NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.translation.federation import label_patterns
from hansa.model.translation.federation.label_patterns import InvalidPattern
from hansa.runtime.errors import HansaError

GROUP, VERSION = keys.FEDERATION, "v1alpha1"
SOURCES = Resource(GROUP, VERSION, "sources", kind="Source")
CLUSTER_SOURCES = Resource(GROUP, VERSION, "clustersources", kind="ClusterSource", namespaced=False)
TARGETS = Resource(GROUP, VERSION, "targets", kind="Target")
CLUSTER_TARGETS = Resource(GROUP, VERSION, "clustertargets", kind="ClusterTarget", namespaced=False)
CLUSTER_SUMMARIES = Resource(GROUP, VERSION, "clustersummaries", kind="ClusterSummary", namespaced=False)

SUMMARY: Final = "singleton"  # the name of the only ClusterSummary
PROVIDER: Final = "admiralty"  # the value of the label and taint virtual-kubelet.io/provider
SOURCE_ROLE: Final = "multicluster-scheduler-source"
SUMMARY_ROLE: Final = "multicluster-scheduler-cluster-summary-viewer"
PROXY_PODS: Final = f"spec.schedulerName={keys.PROXY_SCHEDULER}"  # a field selector, and all other pods:
OTHER_PODS: Final = f"spec.schedulerName!={keys.PROXY_SCHEDULER}"
LONGEST_NODE_NAME = 63  # characters: it is also the value of a label
HASH = 10  # hexadecimal digits


class BadObject(HansaError):
    """A Source or Target is invalid; `reason` is that of its condition Ready."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Condition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One entry of `status.conditions`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a source or target."""

    node: str = ""
    is_connected: bool = msgspec.field(name="connected", default=False)  # the target was ready once
    token_secret: str = ""
    conditions: tuple[Condition, ...] = ()


class SecretReference(msgspec.Struct, frozen=True):
    """The Secret with the kubeconfig of a target. The namespace is that of the Target."""

    name: str = ""
    namespace: str = ""
    key: str = ""
    context: str = ""


class TargetSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a Target or ClusterTarget."""

    is_self: bool | None = msgspec.field(name="self", default=None)
    kubeconfig_secret: SecretReference | None = None
    excluded_labels_regexp: str = ""


class AccountReference(msgspec.Struct, frozen=True):
    """The service account of a ClusterSource."""

    name: str = ""
    namespace: str = ""


class SourceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a Source or ClusterSource."""

    user_name: str = ""
    service_account_name: str = ""
    service_account: AccountReference | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A Target, or a ClusterTarget if its namespace is empty. Make one with `target`."""

    object: Object
    spec: TargetSpec

    @property
    def key(self) -> NamespacedName:
        return self.object.key

    @property
    def resource(self) -> Resource:
        return TARGETS if self.object.namespace else CLUSTER_TARGETS

    @property
    def node(self) -> str:
        """The name of its virtual node, which is also that of its cluster in the registry."""
        return node_name(self.key)

    @property
    def secret(self) -> NamespacedName | None:
        """The Secret with its kubeconfig; None for this cluster itself."""
        found = self.spec.kubeconfig_secret
        return None if found is None else NamespacedName(self.object.namespace or found.namespace, found.name)

    @property
    def is_self(self) -> bool:
        return bool(self.spec.is_self)

    def is_excluded(self, label: str, value: str) -> bool:
        """Whether a label of the target's nodes is not one of the virtual node."""
        pattern = self.spec.excluded_labels_regexp
        return bool(pattern) and label_patterns.compiled(pattern).search(f"{label}={value}") is not None


@dataclass(frozen=True, slots=True)
class Source:
    """A Source, or a ClusterSource if its namespace is empty. Make one with `source`."""

    object: Object
    spec: SourceSpec

    @property
    def key(self) -> NamespacedName:
        return self.object.key

    @property
    def resource(self) -> Resource:
        return SOURCES if self.object.namespace else CLUSTER_SOURCES

    @property
    def account(self) -> NamespacedName | None:
        """Its service account, if it has one."""
        if self.object.namespace:
            name = self.spec.service_account_name
            return NamespacedName(self.object.namespace, name) if name else None
        found = self.spec.service_account
        return None if found is None else NamespacedName(found.namespace, found.name)


def target(obj: Object) -> Target:
    """The typed form of a Target or ClusterTarget; raises BadObject."""
    try:
        spec = obj.decode("spec", TargetSpec)
    except Malformed as error:
        raise BadObject("Malformed", str(error)) from None
    if bool(spec.is_self) == (spec.kubeconfig_secret is not None):
        raise BadObject("InvalidSpec", "set either self: true or kubeconfigSecret, not both and not neither")
    try:
        label_patterns.compiled(spec.excluded_labels_regexp)
    except InvalidPattern as error:
        raise BadObject("InvalidSpec", f'excludedLabelsRegexp "{spec.excluded_labels_regexp}": {error}') from None
    return Target(obj, spec)


def source(obj: Object) -> Source:
    """The typed form of a Source or ClusterSource; raises BadObject."""
    try:
        return Source(obj, obj.decode("spec", SourceSpec))
    except Malformed as error:
        raise BadObject("Malformed", str(error)) from None


def status(obj: Object) -> Status:
    """The status of a source or target; empty if it is malformed."""
    try:
        return obj.decode("status", Status)
    except Malformed:
        return Status()


def node_name(key: NamespacedName) -> str:
    """The virtual node of a target: as its users read it, with a hash if two targets could have the same name."""
    if not key.namespace:
        return hashed(f"admiralty-cluster-{key.name}", "/" + key.name)
    # namespace "a-b" with target "c" would have the name of namespace "a" with target "b-c".
    is_ambiguous = "-" in key.namespace and "-" in key.name
    return hashed(f"admiralty-namespace-{key.namespace}-{key.name}", str(key), always=is_ambiguous)


def hashed(name: str, unique: str, *, longest: int = LONGEST_NODE_NAME, always: bool = False) -> str:
    """A name of limited length; one that is too long, or always, ends with a hash of what is unique instead."""
    if len(name) <= longest and not always:
        return name
    digest = hashlib.sha256(unique.encode()).hexdigest()[:HASH]
    return f"{name[: longest - HASH - 1].rstrip('-.')}-{digest}"
