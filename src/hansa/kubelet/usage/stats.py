"""The statistics of a node, of its pods and of their running containers. Pure."""

import datetime
from dataclasses import dataclass

import msgspec

from hansa.kube.objects import Malformed, Object
from hansa.kubelet.usage.meter import Usage


@dataclass(frozen=True, slots=True)
class ContainerStats:
    """A running container."""

    name: str
    started: datetime.datetime
    usage: Usage


@dataclass(frozen=True, slots=True)
class PodStats:
    """An upper pod with its running containers, at least one."""

    namespace: str
    name: str
    uid: str
    containers: tuple[ContainerStats, ...]

    @property
    def started(self) -> datetime.datetime:
        """When the first of them was started."""
        return min(one.started for one in self.containers)

    @property
    def usage(self) -> Usage:
        """The sum of its containers."""
        parts = [one.usage for one in self.containers]
        return Usage(
            max(one.time for one in parts),
            sum(one.core_seconds for one in parts),
            sum(one.cores for one in parts),
            sum(one.memory for one in parts),
        )


@dataclass(frozen=True, slots=True)
class NodeStats:
    """A node; `usage` is None if nothing is known of any pod."""

    name: str
    usage: Usage | None
    pods: tuple[PodStats, ...]


class _Running(msgspec.Struct, frozen=True, rename="camel"):
    started_at: datetime.datetime | None = None


class _State(msgspec.Struct, frozen=True):
    running: _Running | None = None


class _ContainerStatus(msgspec.Struct, frozen=True):
    name: str
    state: _State = _State()


class _PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    container_statuses: list[_ContainerStatus] = []
    init_container_statuses: list[_ContainerStatus] = []
    ephemeral_container_statuses: list[_ContainerStatus] = []


def running(pod: Object) -> dict[str, datetime.datetime]:
    """The running containers of a pod, and when they were started."""
    try:
        status = pod.decode("status", _PodStatus)
    except Malformed:
        return {}
    return {
        one.name: one.state.running.started_at
        for one in (
            *status.init_container_statuses,
            *status.container_statuses,
            *status.ephemeral_container_statuses,
        )
        if one.state.running is not None and one.state.running.started_at is not None
    }
