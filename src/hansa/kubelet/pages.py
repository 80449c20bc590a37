"""The requests of the kubelet API about a whole node. Pure."""

from enum import StrEnum

from hansa.kubelet.refusal import Refusal


class Page(StrEnum):
    """What is asked of a node; also the label `action` of metrics."""

    HEALTH = "healthz"
    PODS = "pods"
    RUNNING_PODS = "running-pods"
    STATS = "stats"
    METRICS = "metrics"


_BY_PATH = {
    "/healthz": Page.HEALTH,
    "/pods": Page.PODS,
    "/runningpods": Page.RUNNING_PODS,
    "/stats/summary": Page.STATS,
    "/metrics/resource": Page.METRICS,
}


def of(target: str) -> Page | None:
    """The page that a request is for; None if it is for none."""
    return _BY_PATH.get(target.partition("?")[0].removesuffix("/"))


def parse(method: str, target: str) -> Page | None:
    """As `of`; raises a Refusal for a method that is not served."""
    if (page := of(target)) is not None and method != "GET":
        raise Refusal(405, f"405: method {method[:16]} is not allowed")
    return page
