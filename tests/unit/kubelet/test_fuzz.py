"""Ten thousand requests, made of pieces that broke other proxies: none reaches a pod that is not on the node."""

import asyncio
import random
import re

import engine_lab as lab
import simulation
from hansa.engine.registry import Route
from hansa.kube import resources
from hansa.kubelet import pages, rights, routes
from hansa.kubelet.exchange import Exchange
from hansa.kubelet.pods import LinkedPods
from hansa.kubelet.refusal import Refusal
from hansa.model.pair import Key
from view_world import World

CASES = 10_000
PODS = resources.PODS
HERE, THERE = "here", "there"  # on node vn, and on node vn2
TARGET = re.compile(
    r"/api/v1/namespaces/default/pods/here/(log|exec|attach|portforward)"
    r"(\?(?:(?:container|command|stdin|stdout|stderr|tty|ports|follow|limitBytes|previous|sinceSeconds|sinceTime|stream"
    r"|tailLines|timestamps)=[A-Za-z0-9._~%+*-]*&?)*)?"
)
METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "get", "GET ", "G\0T", "")
ACTIONS = (
    "containerLogs",
    "exec",
    "attach",
    "portForward",
    "run",
    "logs",
    "pods",
    "api/v1/nodes/vn2/proxy",
    "Exec",
    "",
)
NAMES = (HERE, THERE, "default", "kube-system", "..", ".", "", "main", "here-uid", "there-uid", "*", "här", "a" * 300)
JOINTS = (
    "/",
    "/",
    "/",
    "/",
    "//",
    "%2f",
    "%2F",
    "%252f",
    "\\",
    "/../",
    "/./",
    "/%2e%2e/",
    ";",
    "%00",
    "%0d%0a",
    " ",
    "\t",
)
QUERIES = (
    "",
    "?command=id&output=1",
    "?container=../../there/main",
    "?command=a%0d%0aHost:%20x",
    "?follow=true&follow=/../../pods/there",
    "?port=80&ports=81&pod=there&namespace=kube-system",
    "?tty=%26stdin%3dtrue&=&&;",
    "#/exec/default/there/main",
    "?" + "command=x&" * 2500,
)
HEADERS = (
    "Host: node",
    "Host: node\r\nHost: other",
    "Host: node\r\nContent-Length: 40\r\nTransfer-Encoding: chunked",
    "Host: node\r\nContent-Length: 0",
    "Host: node\r\nTransfer-Encoding: identity",
    "Host: node\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade",
    "Host: node\r\nX-Remote-User: admin\r\nImpersonate-User: admin",
    "Host: node\r\n folded: value",
    "Host: node\r\nX-Original-URL: /exec/default/there/main",
    "Host : node",
    "",
)
PREFIXES = ("", "", "", "", "http://node", "https://vn2:10250", "//vn2", "/vn2", "*")


def request(chance):
    """One request, as bytes."""
    parts = [chance.choice(ACTIONS)]
    for _ in range(chance.randrange(5)):
        parts += [chance.choice(JOINTS), chance.choice(NAMES)]
    if chance.random() < 0.3:  # nearly valid ones
        parts = [chance.choice(ACTIONS[:4]), "/default/", chance.choice((HERE, THERE)), "/main"]
    target = f"{chance.choice(PREFIXES)}/{''.join(parts)}{chance.choice(QUERIES)}"
    line = f"{chance.choice(METHODS[:2] if chance.random() < 0.8 else METHODS)} {target} HTTP/1.{chance.choice('1119')}"
    text = "\r\n".join((line, chance.choice(HEADERS), "", chance.choice(("", "", "POST /exec/default/there/main"))))
    data = bytearray(text.encode())
    if chance.random() < 0.2:
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


async def received(data):
    """The request as the server reads it."""
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    exchange = Exchange(reader, None)
    await exchange.receive()
    return exchange


async def forwarded(pods, data):
    """What would be asked of the lower API server; None if nothing."""
    try:
        exchange = await received(data)
        rights.of(exchange.method, exchange.target)
        if pages.parse(exchange.method, exchange.target) is not None:
            return None
        call = routes.parse(exchange.method, exchange.target)
        pod = pods.find("vn", call)
    except (Refusal, EOFError):
        return None
    return call.target(*pod.name)


def world_with_pods(world):
    """Two pods on two nodes of one lower cluster."""
    world.view.attach(Route("up", "low2", nodes=frozenset({"vn2"})), world.lower)
    for name, node in ((HERE, "vn"), (THERE, "vn2")):
        world.put(world.upper, PODS, lab.pod(name, node))
        *_, action = world.decide(Key("up", PODS, "default", name))[1]
        world.put(world.lower, PODS, action.obj)
    return LinkedPods(lambda: world.view.clusters)


def test_no_request_reaches_a_pod_of_another_node():
    async def fuzz(outer):
        pods, chance = world_with_pods(World(outer)), random.Random(20)
        found = [await forwarded(pods, request(chance)) for _ in range(CASES)]
        return [target for target in found if target is not None]

    reached = simulation.run(fuzz)
    assert len(reached) > CASES // 100, "too few requests are valid to show anything"
    assert [target for target in reached if not TARGET.fullmatch(target)] == []
