"""Request lines and headers of one tenant on random ways to another's pods: each is refused, or means its own pod."""

import asyncio
import random
import re

from hansa.kube.objects import NamespacedName, Object
from hansa.kubelet import forwarding, routes
from hansa.kubelet.exchange import Exchange
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.tenants.tenant import Tenant
from hansa.model import keys, stamp, tenant_names
from hansa.model.stamp import Origin

CASES = 10_000
# The key of one is a prefix of the other's: namespaces that are put together may be equal.
OURS, THEIRS = Tenant("default-0-a", "default", "a"), Tenant("default-0-a-b", "default", "a-b")
SPACES = ("shop", "b-shop", "default", "kube-system", "a" * 63)
PODS = ("web", "box", "web.v1")
TARGET = re.compile(r"/api/v1/namespaces/([a-z0-9-]+)/pods/([a-z0-9.-]+)/(log|exec|attach|portforward)(\?[!-~]*)?")
AT_KUBELET = re.compile(r"/(containerLogs|exec|attach|portForward)/([a-z0-9-]+)/([a-z0-9.-]+)(/[a-z0-9-]+)?(\?[!-~]*)?")
FORWARDED = {"connection", "upgrade", "x-stream-protocol-version", "sec-websocket-key", "sec-websocket-protocol"}


def a_copy(tenant, namespace, name, *, at=""):
    """A super pod; `at` is another namespace than that of its stamp."""
    metadata = {
        "name": name,
        "namespace": at or tenant_names.super_namespace(tenant.key, namespace),
        "uid": f"{name}-1",
    }
    annotations = {keys.TENANT_CLUSTER: tenant.key, keys.VC_NAME: tenant.name, keys.VC_NAMESPACE: tenant.namespace}
    pod = Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": metadata | {"annotations": annotations}})
    return stamp.put(pod, Origin(tenant.key, f"{tenant.key}-uid", namespace, name))


def world():
    """The super cluster: pods of both tenants, of nobody, and one whose stamp was copied to another namespace."""
    nobody = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": f"{OURS.key}-default"}}
    strayed = a_copy(OURS, "shop", "box", at=f"{OURS.key}-kube-system")
    found = [a_copy(THEIRS, space, pod) for space in SPACES for pod in PODS]
    found += [a_copy(OURS, space, pod) for space in ("shop", "a" * 63) for pod in PODS]
    pods = {pod.key: pod for pod in (Object.of(nobody), strayed, *found)}
    # These two names are the same: only the stamp says whose pod it is.
    assert pods[NamespacedName("default-0-a-b-shop", "web")].annotations[keys.TENANT_CLUSTER] == THEIRS.key
    return pods


class Attempts:
    """Requests made of what attackers try: names of others, dots, encodings, repeated slashes, further headers."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def name(self):
        one = self.random
        plain = one.choice((*SPACES, *PODS, "main", OURS.key, THEIRS.key, f"{THEIRS.key}-shop", f"{OURS.key}-shop"))
        odd = ("", ".", "..", "../..", "*", "%00", "\x7f", "é", " ", ";", "a" * 300, f"web/../../{THEIRS.key}-shop/web")
        text = one.choice((plain, plain, plain, plain.upper(), one.choice(odd), plain + one.choice(odd)))
        for _ in range(one.choice((0, 0, 0, 1, 2))):
            text = "".join(one.choice((char, f"%{ord(char) % 256:02x}", char)) for char in text)
        return text

    def target(self):
        one = self.random
        first = one.choice(("containerLogs", "containerLogs", "exec", "attach", "portForward", "pods", "run", "api/v1"))
        if one.random() < 0.3:
            path = [first, "shop", "web", *([] if first == "portForward" else ["main"])]
        else:
            path = [first, *(self.name() for _ in range(one.randrange(1, 6)))]
        prefix = one.choice(("/", "/", "/", "/", "//", "", "/./", "/../", "https://other/", f"/{THEIRS.key}/"))
        query = one.choice(
            ("", "", "?command=ls", f"?container={THEIRS.key}", "?input=1&output=1&command=a%26b", "?x=%0d%0a")
        )
        return prefix + one.choice(("/", "/", "/", "//", "%2f", "\\")).join(path) + query

    def headers(self):
        one = self.random
        found = [("Host", one.choice(("node", THEIRS.key)))]
        upgrade = [
            ("Connection", "Upgrade"),
            ("Upgrade", "SPDY/3.1"),
            ("X-Stream-Protocol-Version", "v4.channel.k8s.io"),
        ]
        odd = [
            *(("Authorization", "Bearer x"), ("Impersonate-User", "system:admin"), ("X-Remote-User", THEIRS.key)),
            *(("X-Forwarded-For", "10.0.0.1"), ("Content-Length", "5"), ("Transfer-Encoding", "chunked")),
            *(("Sec-WebSocket-Key", "a"), ("Host", THEIRS.key), ("X-Original-URI", f"/exec/{THEIRS.key}")),
        ]
        return found + (upgrade if one.random() < 0.5 else []) + one.sample(odd, one.choice((0, 0, 1, 2)))

    def request(self):
        method = self.random.choice(("GET", "GET", "POST", "POST", "PUT", "get", "OPTIONS"))
        end = self.random.choice((b"\r\n", b"\r\n", b"\r\n", b"\n"))
        lines = [f"{method} {self.target()} HTTP/1.1", *(f"{name}: {value}" for name, value in self.headers())]
        return end.join([*(line.encode() for line in lines), b"", b""])


async def received(data):
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    exchange = Exchange(reader, None)
    await exchange.receive()
    return exchange


def test_no_request_of_one_tenant_means_a_pod_of_another():
    pods, attempts, reached, refused = world(), Attempts(1), 0, 0

    async def attempt():
        nonlocal reached, refused
        try:
            exchange = await received(attempts.request())
            call = routes.parse(exchange.method, exchange.target)
        except (Refusal, EOFError):
            refused += 1
            return
        pod = pods.get(OURS.super_name(call))
        if pod is None or not OURS.has(pod, call):
            refused += 1
            return
        reached += 1
        assert pod.annotations[keys.TENANT_CLUSTER] == OURS.key, exchange.target
        target = call.target(pod.namespace, pod.name)
        match = TARGET.fullmatch(target)
        assert match is not None, target
        assert match.groups()[:2] == (pod.namespace, pod.name), target
        at_kubelet = AT_KUBELET.fullmatch(call.kubelet_target(pod.namespace, pod.name))
        assert at_kubelet is not None, target
        assert at_kubelet.groups()[1:3] == (pod.namespace, pod.name), target
        assert {name.lower() for name, _ in forwarding.of_upgrade(exchange.headers)} <= FORWARDED

    async def main():
        for _ in range(CASES):
            await attempt()

    asyncio.run(main())
    assert reached + refused == CASES
    assert reached > CASES / 100, "some requests are valid"


def test_the_stamp_decides_where_names_are_ambiguous():
    pods = world()
    for namespace in ("b-shop", "kube-system", "default"):
        for name in PODS:
            call = routes.parse("GET", f"/containerLogs/{namespace}/{name}/main")
            pod = pods.get(OURS.super_name(call))
            assert pod is None or not OURS.has(pod, call), (namespace, name)
