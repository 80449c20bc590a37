"""What is told when only a person can help: which condition of a VirtualCluster is broken, and in which words. Pure."""

from dataclasses import replace

from hansa.tenancy import status
from hansa.tenancy.api import BadVirtualCluster, ConditionType, VirtualCluster
from hansa.tenancy.root_namespace import TakenNamespace
from hansa.tenancy.status import Report, Verdict
from hansa.tenancy.version_keeping import MissingVersion


def report(vc: VirtualCluster, error: BadVirtualCluster) -> Report:
    """Somebody must change something before it can go on."""
    match error:
        case MissingVersion():
            kind, reason = ConditionType.CLUSTER_VERSION_FOUND, "ClusterVersionNotFound"
        case TakenNamespace():
            kind, reason = ConditionType.ROOT_NAMESPACE_READY, "RootNamespaceTaken"
        case _:
            kind, reason = ConditionType.READY, "InvalidVirtualCluster"
    failed = status.failed(vc, str(error), reason=reason, needs_somebody=True)
    return replace(failed, conditions={**failed.conditions, kind: Verdict(False, reason, str(error))})
