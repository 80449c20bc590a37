"""Mode admiralty in pods: elected pods of lubeck run in hamburg, with an agent in each, until both are uninstalled."""

import contextlib

import pytest
import yaml

from cluster_contents import contents, is_as_before
from eventually import eventually
from federation import Federation, a_deployment, a_source, a_target
from hansa.local.machines import images
from league import Member

pytestmark = pytest.mark.timeout(600)
NAMESPACE, SHOP = "admiralty", "shop"
WITHIN = 150.0  # seconds; images are unpacked when they are first needed, on a machine that may be busy
SOURCE = {"mode": "admiralty", "sourceController": {"enabled": False}, "agent": {"clusterName": "lubeck"}}
TARGET = {"mode": "admiralty", "agent": {"webhook": False}}


@pytest.fixture(scope="module")
async def before(lubeck, hamburg):
    return [await contents(one.kubectl) for one in (lubeck, hamburg)]


@pytest.fixture(scope="module")
async def installed(lubeck, hamburg, before):
    source, target = lubeck.release(NAMESPACE), hamburg.release(NAMESPACE)
    async with hamburg.namespace(NAMESPACE), lubeck.namespace(NAMESPACE):
        await target.upgrade(TARGET)
        await source.upgrade(SOURCE)
        yield source, target
        with contextlib.suppress(AssertionError):  # a test uninstalled them
            await source.uninstall()
            await target.uninstall()


@pytest.fixture(scope="module")
async def federation(lubeck, hamburg, installed, tmp_path_factory):
    """Hamburg is a target of lubeck in the namespace shop."""
    members = {one.cluster.name: Member(one.cluster, one.kubectl) for one in (lubeck, hamburg)}
    made = Federation(members, tmp_path_factory.mktemp("federation"))
    for one in (lubeck, hamburg):
        await one.kubectl("create", "namespace", SHOP)
    await lubeck.kubectl("label", "namespace", SHOP, "multicluster-scheduler=enabled")
    await hamburg.kubectl.apply(a_source("lubeck", SHOP))
    await made.ready(members["hamburg"], "source", "lubeck", namespace=SHOP)
    server = ("--server", hamburg.address)
    secret = await made.export("hamburg", "lubeck", name="hamburg", namespace=SHOP, flags=server)
    secret["metadata"]["namespace"] = SHOP
    await lubeck.kubectl.apply(secret, a_target("hamburg", SHOP))
    await made.joined(members["lubeck"], "hamburg", SHOP)
    return made


async def test_elected_pods_run_in_the_target_and_show_their_logs(lubeck, federation):
    main = {"image": images.BUSYBOX, "args": ["sh", "-c", "echo moin; sleep 1000000"]}
    await lubeck.kubectl(
        *("-n", SHOP, "apply", "-f", "-"),
        stdin=yaml.safe_dump(a_deployment("web", 2, container=main, terminationGracePeriodSeconds=0)),
    )
    await lubeck.kubectl("-n", SHOP, "rollout", "status", "deployment/web", f"--timeout={WITHIN:g}s")
    assert len(await federation.delegates(federation.members["hamburg"], SHOP)) == 2

    async def are_logged():
        assert await lubeck.kubectl("-n", SHOP, "logs", "deployment/web") == "moin\n"
        return True

    await eventually(are_logged, within=60)


async def test_uninstallation_leaves_both_clusters_as_they_were(lubeck, hamburg, before, installed, federation):
    await lubeck.kubectl("-n", SHOP, "delete", "deployment", "web", "--timeout=60s")
    for release in installed:
        await release.uninstall()
    for one in (lubeck, hamburg):
        await one.kubectl("delete", "namespace", NAMESPACE, SHOP, "--timeout=120s")
    for one, then in zip((lubeck, hamburg), before, strict=True):
        await is_as_before(one.kubectl, then)
