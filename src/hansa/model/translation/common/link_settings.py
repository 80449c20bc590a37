"""The settings of a link to a lower cluster that a virtual node represents."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hansa.model import keys
from hansa.model.pair import Link


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """The settings of one link."""

    # The virtual node that represents the lower cluster, and those of its labels that exist for the upper scheduler
    # only: a pod that selects them is in the right cluster already, so they are not required of lower nodes.
    node: str = ""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    taint: str = keys.PROVIDER_TAINT  # the key of the virtual node's taint
    # Labels of pods that are not synced down.
    ignored_labels: frozenset[str] = frozenset({"group.batch.scheduler.tencent.com"})
    # Pods keep the name of their priority class: the lower cluster has classes of these names.
    keeps_priority_class: bool = False
    # The schedulerName of lower pods; empty: the lower cluster's default.
    scheduler: str = ""
    # The address of the upper API server for lower pods; empty: their variables are not changed.
    api_host: str = ""
    api_port: str = "443"
    # The address families of Services in the lower cluster, the preferred one first; empty: unknown.
    ip_families: tuple[str, ...] = ()


_DEFAULTS = LinkSettings()


def of(link: Link) -> LinkSettings:
    """The settings of a link."""
    return _DEFAULTS if link.settings is None else link.settings_as(LinkSettings)
