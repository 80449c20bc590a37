"""Requests of the kubelet API, and what they become at an API server."""

import pytest

from hansa.kubelet import routes
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.routes import Action

UID = "3f1c7a52-6b0e-4a6c-9c1f-1d2e3f4a5b6c"


@pytest.mark.parametrize(
    ("method", "target", "lower"),
    [
        ("GET", "/containerLogs/shop/web/app", "log?container=app"),
        (
            "GET",
            "/containerLogs/shop/web/app?follow=true&tailLines=5&timestamps=true&sinceSeconds=60&limitBytes=9",
            "log?follow=true&tailLines=5&timestamps=true&sinceSeconds=60&limitBytes=9&container=app",
        ),
        (
            "GET",
            "/containerLogs/shop/web/app?previous=true&sinceTime=2026-01-02T03:04:05Z&stream=All",
            "log?previous=true&sinceTime=2026-01-02T03%3A04%3A05Z&stream=All&container=app",
        ),
        (
            "POST",
            "/exec/shop/web/app?command=sh&command=-c&command=echo+%26+exit+3&input=1&output=1&error=1&tty=0",
            "exec?command=sh&command=-c&command=echo+%26+exit+3&stdin=true&stdout=true&stderr=true&tty=false&container=app",
        ),
        ("GET", f"/exec/shop/web/{UID}/app?command=&output=1", "exec?command=&stdout=true&container=app"),
        ("POST", "/attach/shop/web/app?input=1&output=1&tty=1", "attach?stdin=true&stdout=true&tty=true&container=app"),
        ("POST", "/portForward/shop/web", "portforward"),
        ("GET", f"/portForward/shop/web/{UID}?port=80&port=443", "portforward?ports=80&ports=443"),
    ],
)
def test_a_request_is_the_same_request_for_the_lower_pod(method, target, lower):
    call = routes.parse(method, target)
    assert call.target("tenant-shop", "web-1") == f"/api/v1/namespaces/tenant-shop/pods/web-1/{lower}"


@pytest.mark.parametrize(
    ("method", "target", "lower"),
    [
        ("GET", "/containerLogs/shop/web/app?follow=true&tailLines=5", "containerLogs/a/b/app?follow=true&tailLines=5"),
        (
            "POST",
            f"/exec/shop/web/{UID}/app?command=sh&command=-c&command=echo+%26&input=1&output=true&tty=0",
            "exec/a/b/app?command=sh&command=-c&command=echo+%26&input=1&output=1&tty=0",
        ),
        ("POST", "/attach/shop/web/app?input=1", "attach/a/b/app?input=1"),
        ("GET", "/portForward/shop/web?port=80&port=443", "portForward/a/b?port=80&port=443"),
    ],
)
def test_a_request_is_the_same_request_at_another_kubelet(method, target, lower):
    assert routes.parse(method, target).kubelet_target("a", "b") == f"/{lower}"


def test_a_uid_is_read_where_the_path_has_one():
    assert routes.parse("POST", f"/exec/shop/web/{UID}/app").uid == UID
    assert routes.parse("POST", f"/portForward/shop/web/{UID}").uid == UID
    assert routes.parse("POST", "/portForward/shop/web").uid == ""


def test_parameters_that_are_not_listed_are_dropped():
    call = routes.parse("GET", "/containerLogs/shop/web/app?container=other&insecureSkipTLSVerifyBackend=true&pretty=1")
    assert call.target("a", "b") == "/api/v1/namespaces/a/pods/b/log?container=app"


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/configz", 404),
        ("GET", "/logs/syslog", 404),
        ("POST", "/run/shop/web/app?cmd=id", 404),
        ("GET", "/debug/pprof/heap", 404),
        ("GET", "/containerLogs/shop/web", 404),
        ("GET", f"/containerLogs/shop/web/{UID}/app/more", 404),
        ("GET", "/containerLogs/shop/../app", 404),
        ("GET", "/containerLogs/shop/web%2F..%2Fother/app", 404),
        ("GET", "/containerLogs/shop%00/web/app", 404),
        ("GET", "/containerLogs/shop/web/app%20", 404),
        ("GET", "/containerLogs/shop/web/%ff", 404),
        ("GET", "//evil/containerLogs/shop/web/app", 404),
        ("GET", "/containerLogs/SHOP/web/app", 404),
        ("POST", "/containerLogs/shop/web/app", 405),
        ("DELETE", "/exec/shop/web/app", 405),
        ("GET", "/containerLogs/shop/web/app?" + "&".join(["follow=true"] * 3000), 400),
    ],
)
def test_anything_else_is_refused(method, target, status):
    with pytest.raises(Refusal) as refused:
        routes.parse(method, target)
    assert refused.value.status == status


def test_logs_are_no_upgrade():
    assert [action for action in Action if not action.is_upgrade] == [Action.LOGS]
