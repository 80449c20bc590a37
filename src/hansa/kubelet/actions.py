"""The label `action` of metrics of calls. Pure."""

from hansa.kubelet import pages, routes

CONNECT, OTHER = "connect", "other"  # a TLS handshake that fails, and requests that are not served


def of(target: str) -> str:
    """The action of a request, also of one that is refused."""
    return pages.of(target) or routes.action(target) or OTHER
