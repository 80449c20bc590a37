"""Maps an error that needs a user's change to the condition of a VirtualCluster that it breaks. Pure.

The controller uses it for errors of type BadVirtualCluster; all others are `status.failed` and retried.
"""

from dataclasses import replace

from hansa.tenancy.api import BadVirtualCluster, ConditionState, ConditionType, VirtualCluster
from hansa.tenancy.operator import status
from hansa.tenancy.operator.root_namespace import TakenNamespace
from hansa.tenancy.operator.status import Report
from hansa.tenancy.operator.version_choice import MissingVersion


def report(vc: VirtualCluster, error: BadVirtualCluster) -> Report:
    """The status of a VirtualCluster that cannot proceed before a user changes something."""
    match error:
        case MissingVersion():
            kind, reason = ConditionType.CLUSTER_VERSION_FOUND, "ClusterVersionNotFound"
        case TakenNamespace():
            kind, reason = ConditionType.ROOT_NAMESPACE_READY, "RootNamespaceTaken"
        case _:
            kind, reason = ConditionType.READY, "InvalidVirtualCluster"
    failed = status.failed(vc, str(error), reason=reason, needs_user=True)
    return replace(failed, conditions={**failed.conditions, kind: ConditionState(False, reason, str(error))})
