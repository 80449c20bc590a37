"""What the steps need to know of one way from an upper cluster to a lower one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hansa.model import keys
from hansa.model.pair import Link


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one link."""

    # The virtual node that stands for the lower cluster, and those of its labels that no node below has in that sense:
    # they steer the upper scheduler, so what a pod demands of them is met by being here.
    node: str = ""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    taint: str = keys.PROVIDER_TAINT  # the key of the virtual node's taint
    # Labels of pods that the lower cluster must not see.
    ignored_labels: frozenset[str] = frozenset({"group.batch.scheduler.tencent.com"})
    # Pods keep the name of their priority class: the lower cluster has classes of these names.
    keeps_priority_class: bool = False
    # Who schedules pods below; empty is the lower cluster's default.
    scheduler: str = ""
    # Where pods below reach the upper API server; empty: they are not told.
    api_host: str = ""
    api_port: str = "443"
    # The address families that services can have below, the first one preferred; empty: not known.
    ip_families: tuple[str, ...] = ()


_DEFAULTS = Settings()


def of(link: Link) -> Settings:
    """The settings of a link."""
    return link.settings if isinstance(link.settings, Settings) else _DEFAULTS
