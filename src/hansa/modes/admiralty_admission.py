"""The mutations of a source cluster: elected pods become proxy pods, in namespaces that are labelled for it.

Others are kept off virtual nodes if they tolerate every taint.
"""

from typing import Any, Final

from hansa.admission import proxy_pods, unelected_pods
from hansa.admission.mutation import Caches, Json, Mutation, Request, Selection
from hansa.kube import resources
from hansa.model import keys
from hansa.modes.admiralty_settings import AdmiraltySettings

CONFIGURATION_NAME: Final = "multicluster-scheduler"
WEBHOOK_NAME: Final = "multicluster-scheduler.multicluster.admiralty.io"
_ELECTED: Final = f"has(object.metadata.annotations) && '{keys.ELECT}' in object.metadata.annotations"


def mutations(_settings: AdmiraltySettings) -> tuple[Mutation, ...]:
    """The mutations of the webhook."""
    return (
        Mutation(
            name="proxy-pods",
            resources=(resources.PODS,),
            selection=Selection(
                matches=lambda request: proxy_pods.is_elected(request.object),
                namespace_selector=(_in(keys.ENABLED, "enabled"),),
                # Without it, no pod could be created in these namespaces while the webhook does not answer.
                conditions=({"name": "elected", "expression": _ELECTED},),
            ),
            mutate=_proxy,
        ),
        Mutation(
            name="unelected-pods",
            resources=(resources.PODS,),
            selection=Selection(
                matches=lambda request: unelected_pods.may_be_misplaced(request.object),
                conditions=unelected_pods.conditions(),
            ),
            is_optional=True,
            mutate=_keep_off,
        ),
    )


def _proxy(request: Request, _caches: Caches) -> Json:
    return proxy_pods.proxy(request.object)


def _keep_off(request: Request, _caches: Caches) -> Json:
    return unelected_pods.keep_off(request.object)


def _in(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [value]}
