"""Real containers on joined pod networks: a Service answers in each cluster, wherever its delegates run."""

import asyncio

import pytest

import real_machine
from eventually import eventually
from federation import Federation, Pods, a_deployment
from hansa.local import ClusterSpec
from hansa.local.machines import images
from hansa.local.machines.host_network import HostNetwork
from hansa.programs import ports, relay
from hansa.programs.relay import NetnsAddress
from hansa.runtime import tasks
from league import PATIENCE, fresh_name, member
from programs import Refused

pytestmark = pytest.mark.timeout(600)
NAMES = {"east": "real-east", "west": "real-west"}


@pytest.fixture(scope="module")
async def real_federation(fleet, kubectl, tmp_path_factory):
    """Two clusters with a real node each, whose pods reach each other; east has east and west as targets."""
    folder = tmp_path_factory.mktemp("real-federation")
    real_machine.tools(folder)
    specs = [ClusterSpec(name, real_nodes=1, join_pods=True) for name in NAMES.values()]
    try:
        made = {one.name: member(one, kubectl) for one in await fleet.up(specs)}
        federation = Federation({name: made[cluster] for name, cluster in NAMES.items()}, folder)
        [port] = ports.choose(1, taken=(), seed="real-federation")
        inside = NetnsAddress(HostNetwork(fleet.state.root).host(NAMES["east"], 0), "127.0.0.1", port)
        # The API server runs in a network namespace of its own: the webhook's address is the same there.
        reached = asyncio.create_task(relay.serve(inside, NetnsAddress("", "127.0.0.1", port)))
        await federation.start("west", flags=("--no-webhook",))
        await federation.start(
            "east", flags=("--pod-networks", "10.0.0.0/8", "--webhook-address=127.0.0.1", f"--webhook-port={port}")
        )
        yield federation
        await federation.stop()
        await tasks.cancel(reached)
    finally:
        await fleet.down(list(NAMES.values()))


@pytest.fixture
async def pods(real_federation):
    name = fresh_name()
    for one in real_federation.members.values():
        await one.kubectl("create", "namespace", name)
    await real_federation.members["east"].kubectl("label", "namespace", name, "multicluster-scheduler=enabled")
    await real_federation.connect_self("east", namespace=name)
    await real_federation.connect("east", "west", namespace=name)
    yield Pods(real_federation, name)
    for one in real_federation.members.values():
        await one.kubectl("delete", "namespace", name, "--wait=false")


def a_web(name, cluster):
    """A Deployment of servers in one cluster."""
    container = {"image": images.AGNHOST, "args": ["netexec", "--http-port=80"], "ports": [{"containerPort": 80}]}
    ends = {"terminationGracePeriodSeconds": 0}
    here = {"kubernetes.io/hostname": f"{NAMES[cluster]}-real-1"}
    return a_deployment(name, 1, container=container, nodeSelector=here, **ends)


async def test_curl_nginx_is_answered_by_a_delegate_in_another_cluster(real_federation, pods):
    """From a pod of the source by a delegate in its target, and the other way round, until the Service is deleted."""
    await pods.apply(a_web("nginx", "west"), a_web("back", "east"))
    for name in ("nginx", "back"):
        await pods.rolled_out(name)
        await pods.east.kubectl("-n", pods.namespace, "expose", "deployment", name)
    for client, name, server in ((pods.east, "nginx", pods.west), (pods.west, "back", pods.east)):
        await client.kubectl("-n", pods.namespace, "run", "foo", "--image", images.BUSYBOX, "--", "sleep", "1000000")
        [delegate] = await real_federation.delegates(server, pods.namespace)
        expected = delegate["metadata"]["name"]

        async def answered(client=client, name=name, expected=expected):
            request = ("timeout", "5", "wget", "-qO-", f"http://{name}/hostname")
            try:
                answer = await client.kubectl("-n", pods.namespace, "exec", "foo", "--", *request)
            except Refused as error:
                raise AssertionError(str(error)) from None
            assert answer == expected
            return True

        await eventually(answered, within=PATIENCE)
    await pods.delete("service", "nginx", "back")

    async def gone():
        for one in (pods.east, pods.west):
            assert await one.all("endpointslices", namespace=pods.namespace) == []
        return True

    await eventually(gone, within=PATIENCE)
