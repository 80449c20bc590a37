"""Real containers below: they reach the upper API server as if they ran there, and each other's services by name."""

import json

import pytest

import real_machine
from eventually import eventually
from hansa.local import ClusterSpec
from hansa.local.machines import images
from league import League, container, fresh_name, member, pod
from programs import Refused

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
async def real_league(fleet, kubectl, tmp_path_factory):
    """Clusters with a real node each, whose pods reach each other; pods get the address of the upper API server."""
    folder = tmp_path_factory.mktemp("real-league")
    real_machine.tools(folder)
    names = ("real-upper", "real-one", "real-two")
    specs = [ClusterSpec(name, real_nodes=1, join_pods=True, audit=name == "real-upper") for name in names]
    try:
        upper, *lowers = (member(made, kubectl) for made in await fleet.up(specs))
        league = League(upper, {one.name: one for one in lowers}, folder, {"upperAddress": await address(upper)})
        await league.start()
        await league.ready()
        yield league
        await league.stop()
    finally:
        await fleet.down(names)


async def address(upper):
    """The address of the API server for pods, from the Service `kubernetes`."""
    where = "jsonpath={.items[0].endpoints[0].addresses[0]}:{.items[0].ports[0].port}"
    return await upper.kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=kubernetes", "-o", where)


@pytest.fixture
async def place(real_league):
    name = fresh_name()
    await real_league.upper.kubectl("create", "namespace", name)
    yield name
    for one in (real_league.upper, *real_league.lowers.values()):
        await one.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


async def running(league, namespace, name, image, *arguments, on, labels=None):
    spec = {"containers": [container(image=image, args=list(arguments))], "terminationGracePeriodSeconds": 0}
    made = pod(name, on=on, metadata={"labels": labels or {}}, **spec)
    await league.upper.kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(made))
    return await league.phase(namespace, name, within=120)


async def test_a_lower_pod_calls_the_upper_api_server_as_its_service_account(real_league, place):
    await running(real_league, place, "client", images.AGNHOST, "inclusterclient", "--poll-interval=1", on="real-one")
    user = f"system:serviceaccount:{place}:default"

    async def logged():
        return [one for one in real_league.upper.audit(user) if one["requestURI"] == "/healthz"]

    calls = await eventually(logged, within=60)
    assert {one["responseStatus"]["code"] for one in calls} == {200}
    assert {one["user"]["username"] for one in calls} == {user}


async def test_a_service_is_reached_by_its_name_from_a_pod_in_another_cluster(real_league, place):
    await running(
        real_league, place, "web", images.AGNHOST, "netexec", "--http-port=8080", on="real-one", labels={"app": "web"}
    )
    await running(real_league, place, "box", images.BUSYBOX, "sleep", "1000000", on="real-two")
    await real_league.upper.kubectl("-n", place, "create", "service", "clusterip", "web", "--tcp=80:8080")
    below = real_league.lowers["real-two"].kubectl

    async def answered():
        try:
            return await below("-n", place, "exec", "box", "--", "wget", "-qO-", "http://web/hostname") == "web"
        except Refused as error:
            raise AssertionError(str(error)) from None

    await eventually(answered, within=60)


async def test_the_exit_code_of_a_failed_container_is_synced_up(real_league, place):
    failing = container(image=images.BUSYBOX, args=["sh", "-c", "exit 7"])
    made = pod("p", on="real-two", containers=[failing], restartPolicy="Never")
    await real_league.upper.kubectl("-n", place, "create", "-f", "-", stdin=json.dumps(made))
    failed = await real_league.phase(place, "p", "Failed", within=120)
    assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7


async def test_a_lower_pod_mounts_the_content_of_the_upper_objects(real_league, place):
    kube = real_league.upper.kubectl
    await kube("-n", place, "create", "configmap", "c", "--from-literal=text=moin")
    await kube("-n", place, "create", "secret", "generic", "s", "--from-literal=word=psst")
    mounted = container(
        image=images.BUSYBOX,
        args=["sh", "-c", 'test "$(cat /c/text) $WORD" = "moin psst"'],
        volumeMounts=[{"name": "c", "mountPath": "/c"}],
        env=[{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "word"}}}],
    )
    volumes = [{"name": "c", "configMap": {"name": "c"}}]
    made = pod("p", on="real-one", containers=[mounted], volumes=volumes, restartPolicy="Never")
    await kube("-n", place, "create", "-f", "-", stdin=json.dumps(made))
    await real_league.phase(place, "p", "Succeeded", within=120)
