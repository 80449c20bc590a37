"""Services and their endpoints are in every lower cluster, so that a name resolves there."""

import json

import programs
from eventually import eventually
from league import deployment, fresh_name, named


def service(name, **spec):
    ports = [{"port": 80, "targetPort": 8080}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": ports, "selector": {"app": "web"}, **spec},
    }


async def create(league, namespace, *objects):
    items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    await league.upper.kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(items))


async def endpoints(member, namespace, name):
    """All addresses of a service, ready ones."""
    slices = await member.all("endpointslices", namespace=namespace, labels=f"kubernetes.io/service-name={name}")
    return sorted(
        address
        for one in slices
        for endpoint in one.get("endpoints") or []
        if endpoint.get("conditions", {}).get("ready")
        for address in endpoint["addresses"]
    )


async def test_a_service_has_the_upper_endpoints_in_every_lower_cluster(league, upper_namespace):
    await create(league, upper_namespace, deployment("web", 4), service("web"))
    await league.upper.kubectl("-n", upper_namespace, "rollout", "status", "deployment/web", "--timeout", "120s")
    for scale in (4, 2):
        await league.upper.kubectl("-n", upper_namespace, "scale", "deployment/web", f"--replicas={scale}")

        async def same(wanted=scale):
            above = await endpoints(league.upper, upper_namespace, "web")
            assert len(above) == wanted
            for member in league.lowers.values():
                assert await endpoints(member, upper_namespace, "web") == above, member.name
            return True

        await eventually(same)
    for member in league.lowers.values():
        copy = await member.find("service", "web", namespace=upper_namespace)
        assert "selector" not in copy["spec"]
        assert copy["spec"]["ports"][0]["targetPort"] == 8080
    await league.upper.kubectl("-n", upper_namespace, "delete", "service", "web")
    for member in league.lowers.values():
        await league.gone(member, "service", "web", namespace=upper_namespace)


async def test_headless_and_node_port_services_are_what_they_are(league, upper_namespace):
    await create(league, upper_namespace, service("headless", clusterIP="None"), service("outside", type="NodePort"))
    for member in league.lowers.values():
        headless = await league.there(member, "service", "headless", namespace=upper_namespace)
        assert headless["spec"]["clusterIP"] == "None"
        outside = await league.there(member, "service", "outside", namespace=upper_namespace)
        assert outside["spec"]["type"] == "NodePort"
        assert outside["spec"]["clusterIP"] not in ("", "None")


async def test_changes_of_a_service_follow(league, upper_namespace):
    await create(league, upper_namespace, service("web"))
    for member in league.lowers.values():
        await league.there(member, "service", "web", namespace=upper_namespace)
    await create(league, upper_namespace, service("web", ports=[{"port": 81, "targetPort": 8081}]))

    async def followed():
        for member in league.lowers.values():
            copy = await member.find("service", "web", namespace=upper_namespace)
            assert [(port["port"], port["targetPort"]) for port in copy["spec"]["ports"]] == [(81, 8081)]
        return True

    await eventually(followed)


async def test_the_api_servers_own_service_and_those_of_kube_system_are_left_alone(league, upper_namespace):
    await create(league, "kube-system", service("system-web"))
    await create(league, upper_namespace, service("witness"))
    for member in league.lowers.values():
        await league.there(member, "service", "witness", namespace=upper_namespace)
        own = await member.find("service", "kubernetes", namespace="default")
        assert "hansa.dev/upper" not in own["metadata"].get("labels", {})
        assert "system-web" not in named(await member.all("services", namespace="kube-system"))
    await league.upper.kubectl("-n", "kube-system", "delete", "service", "system-web")


async def test_system_services_are_synced_with_the_flag(league, upper_namespace, tmp_path):
    """Every cluster has its own `default/kubernetes`, which is never modified: a conflict is reported."""
    await league.stop()
    lubeck, name = league.lowers["lubeck"], fresh_name("system")
    own = await lubeck.find("service", "kubernetes", namespace="default")
    flags = ["--nodename", "vn-system", "--kubeconfig", str(league.upper.cluster.kubeconfig), "--system-services"]
    lower = ["--client-kubeconfig", str(lubeck.cluster.kubeconfig)]
    async with programs.hansa("virtual-node", *flags, *lower, log=tmp_path / "log"):
        await create(league, "kube-system", service(name))
        carried = await league.there(lubeck, "service", name, namespace="kube-system")
        assert carried["metadata"]["annotations"]["global"] == "true"

        async def reported():
            events = await league.upper.all("events", namespace="default")
            return [one for one in events if one["type"] == "Warning" and "default/kubernetes" in one["message"]]

        await eventually(reported)
        await league.upper.kubectl("-n", "kube-system", "delete", "service", name)
        await league.gone(lubeck, "service", name, namespace="kube-system")
    still = await lubeck.find("service", "kubernetes", namespace="default")
    assert (still["metadata"]["uid"], still["spec"]) == (own["metadata"]["uid"], own["spec"])
    await league.upper.kubectl("delete", "node", "vn-system")
