"""The rights that requests need, as a kubelet of the same version asks for them."""

import pytest

from hansa.kubelet import rights
from hansa.kubelet.rights import Right


@pytest.mark.parametrize(
    ("method", "target", "right"),
    [
        ("GET", "/pods", Right("get", ("pods", "proxy"))),
        ("GET", "/runningpods/", Right("get", ("pods", "proxy"))),
        ("GET", "/healthz?verbose", Right("get", ("healthz", "proxy"))),
        ("GET", "/configz", Right("get", ("configz", "proxy"))),
        ("GET", "/stats/summary", Right("get", ("stats",))),
        ("GET", "/metrics/resource", Right("get", ("metrics",))),
        ("GET", "/metrics", Right("get", ("metrics",))),
        ("GET", "/logs/syslog", Right("get", ("log",))),
        ("POST", "/checkpoint/shop/web/app", Right("create", ("checkpoint",))),
        ("GET", "/containerLogs/shop/web/app", Right("get", ("proxy",))),
        ("DELETE", "/pods", Right("delete", ("pods", "proxy"))),
        # A prefix of a name is another name.
        ("GET", "/podsx", Right("get", ("proxy",))),
        ("GET", "/%70ods", Right("get", ("proxy",))),
        ("GET", "//pods", Right("get", ("proxy",))),
        ("BREW", "/pods", Right("create", ("pods", "proxy"))),
    ],
)
def test_the_right_of_a_request(method, target, right):
    assert rights.of(method, target) == right


@pytest.mark.parametrize(
    "target", ["/exec/shop/web/app", "/attach/shop/web/app?tty=1", "/portForward/shop/web", "/run/x"]
)
def test_a_command_needs_the_right_to_create_also_by_websocket(target):
    assert rights.of("GET", target) == rights.of("POST", target) == Right("create", ("proxy",))
