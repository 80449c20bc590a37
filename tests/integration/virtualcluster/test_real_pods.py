"""Pods of a tenant on a real node: they call their tenant's API server from inside, and find Services by name."""

import asyncio
import json

import pytest

from eventually import eventually
from hansa.kube import resources
from hansa.local import ClusterSpec
from hansa.local.machines import dns, images
from hansa.local.machines.addresses import Networks
from hansa.local.machines.host_network import HostNetwork
from hansa.programs import relay
from hansa.programs.components import APISERVER
from hansa.programs.relay import NetnsAddress
from hansa.tenancy import installing
from programs import Kubectl, Refused
from tenant_league import Side, Tenants, pod

PORT = 7443  # of the tenant's API server in the super cluster's network
# What stock CoreDNS asks for: it is a part of the tenant's control plane.
ALLOWED = "priorityClasses,controlPlaneNodes"
ACCOUNT = "system:serviceaccount:default:default"
FLUSH = {"kube-apiserver": ("--audit-log-batch-max-wait=200ms",)}


@pytest.fixture(scope="module")
async def crew(real_cluster, fleet, kubectl, tmp_path_factory):
    """A tenant over a super cluster with a real node; a door lets pods reach its API server."""
    [made] = await fleet.up([ClusterSpec("crew", scheduler=False, audit=True, flags=FLUSH)])
    below, above = Networks(real_cluster.record.slot), Networks(made.record.slot)
    inside = NetnsAddress(HostNetwork(fleet.state.root).host("real", 0), str(below.control_plane), PORT)
    outside = NetnsAddress("", "127.0.0.1", made.record.ports[APISERVER])
    bridge = await asyncio.create_subprocess_exec(*relay.command(inside, outside))
    async with real_cluster.client("hansa-test") as lower, made.client("hansa-test") as upper:
        await installing.install(lower)
        tenants = Tenants(
            Side(real_cluster, Kubectl(kubectl, real_cluster.kubeconfig), lower), tmp_path_factory.mktemp("crew")
        )
        words = {"allow": ALLOWED, "endpoint-addresses": inside.address}
        tenant = await tenants.add("crew", Side(made, Kubectl(kubectl, made.kubeconfig), upper), **words)
        await tenant.make(
            resources.ENDPOINT_SLICES,
            "kubernetes",
            "default",
            metadata={"labels": {"kubernetes.io/service-name": "kubernetes"}},
            addressType="IPv4",
            endpoints=[{"addresses": [inside.address]}],
            ports=[{"name": "https", "port": PORT, "protocol": "TCP"}],
        )
        await tenant.kubectl.apply(*dns.manifests(above.dns))
        await tenants.start()
        yield tenants, tenant
        await tenants.super.kubectl("delete", "vc", "crew", "--wait=false")
        await tenants.super.gone(resources.NAMESPACES, tenant.below("default"))
        await tenants.stop()
    bridge.kill()
    await bridge.wait()


@pytest.mark.timeout(240)
async def test_a_pod_calls_its_tenants_api_server_from_inside_and_finds_a_service_by_name(crew):
    tenants, tenant = crew
    await tenant.make(resources.PODS, "web", "default", **agnhost("web", "netexec", "--http-port=8080"))
    await tenant.make(resources.PODS, "caller", "default", **agnhost("caller", "inclusterclient", "--poll-interval=1"))
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    await tenant.make(resources.SERVICES, "web", "default", spec=spec)
    box = pod(terminationGracePeriodSeconds=0)
    box["spec"]["containers"] = [{"name": "main", "image": images.BUSYBOX, "args": ["sleep", "1000000"]}]
    await tenant.make(resources.PODS, "box", "default", **box)
    for name in ("web", "box", "caller"):
        await tenant.phase(name)

    async def finds_it():
        try:
            answer = await tenants.super.kubectl(
                "-n",
                tenant.below("default"),
                "exec",
                "box",
                "--",
                "wget",
                "-qO-",
                "http://web.default.svc.cluster.local/hostname",
            )
        except Refused as error:
            raise AssertionError(str(error)) from None
        assert answer == "web", answer
        return True

    await eventually(finds_it, within=120, every=1.0)

    async def has_called():
        lines = (tenant.cluster.folder / "log" / "audit.log").read_text().splitlines()
        return any(json.loads(line)["user"]["username"] == ACCOUNT for line in lines)

    await eventually(has_called, within=60, every=0.5)


@pytest.mark.timeout(240)
async def test_a_lower_pod_has_the_hostname_of_the_upper_pod_also_as_fqdn(crew):
    tenants, tenant = crew
    below = tenant.below("default")
    command = {"name": "main", "image": images.BUSYBOX, "args": ["sleep", "1000000"]}
    for name, fields in {"short": {}, "whole": {"setHostnameAsFQDN": True}}.items():
        box = pod(terminationGracePeriodSeconds=0, hostname="h", subdomain="s", **fields)
        box["spec"]["containers"] = [command]
        await tenant.make(resources.PODS, name, "default", **box)

    async def hostname(name, *arguments):
        await tenant.phase(name)
        return (await tenants.super.kubectl("-n", below, "exec", name, "--", "hostname", *arguments)).strip()

    above = "h.s.default.svc.cluster.local"
    assert [await hostname("whole"), await hostname("whole", "-f")] == [above, above]
    # A known difference: a kubelet writes the whole name of its own cluster into /etc/hosts.
    assert [await hostname("short"), await hostname("short", "-f")] == ["h", f"h.s.{below}.svc.cluster.local"]


def agnhost(app, *arguments):
    made = pod(metadata={"labels": {"app": app}}, terminationGracePeriodSeconds=0)
    made["spec"]["containers"] = [{"name": "main", "image": images.AGNHOST, "args": list(arguments)}]
    return made
