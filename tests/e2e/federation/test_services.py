"""Services that select proxy pods lead to their delegates in all clusters; global Services and Ingresses are copied."""

import asyncio
import json

from eventually import eventually
from federation import AGENT, a_deployment
from hansa.kube.objects import NamespacedName
from hansa.model import keys
from hansa.model.translation.federation import exports
from league import PATIENCE, condition, fresh_name

ANNOTATIONS = ("io.cilium/global-service", "service.cilium.io/global")
PREFIXED = {"multicluster.admiralty.io/app": "web"}


def a_service(name="web", *, annotations=None, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}], **spec},
    }


def an_ingress(backend):
    path = {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": backend, "port": {"number": 80}}}}
    rules = [{"host": f"{backend}.example.com", "http": {"paths": [path]}}]
    metadata = {"name": backend}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": {"rules": rules}}


async def selects(member, namespace, name, selector, **labels):
    """Wait until a Service has this selector; it."""

    async def look():
        found = await member.find("service", name, namespace=namespace)
        assert found is not None, f"no service {name} in {member.name}"
        assert found["spec"]["selector"] == selector, found
        assert labels.items() <= found["metadata"].get("labels", {}).items(), found["metadata"]
        return found

    return await eventually(look, within=PATIENCE)


async def has_gone(member, namespace, kind, name):
    async def look():
        assert await member.find(kind, name, namespace=namespace) is None, f"{kind} {name} is in {member.name}"
        return True

    await eventually(look, within=PATIENCE)


async def leads_to(member, namespace, wanted):
    """Wait until the endpoints of all Services of a namespace have these addresses, each once."""

    async def look():
        slices = await member.all("endpointslices", namespace=namespace)
        endpoints = [endpoint for one in slices for endpoint in one.get("endpoints") or ()]
        assert sorted(a for one in endpoints for a in one["addresses"]) == sorted(wanted)
        return all(one["conditions"]["ready"] for one in endpoints)

    await eventually(look, within=PATIENCE)


async def test_a_service_of_proxies_is_rerouted_copied_and_restored(federation, namespace, nodes, pods):
    await pods.apply(a_deployment("web", 4), a_service())
    east = await selects(pods.east, namespace, "web", PREFIXED)
    west = await selects(pods.west, namespace, "web", PREFIXED)
    for one in (east, west):
        assert [one["metadata"]["annotations"][key] for key in ANNOTATIONS] == ["true", "true"]
    await pods.rolled_out("web")
    for member in (pods.east, pods.west):
        wanted = {one["status"]["podIP"] for one in await federation.delegates(member, namespace)}

        await leads_to(member, namespace, wanted)
    await pods.apply(a_service(ports=[{"port": 81, "targetPort": 8081}]))  # a manifest knows nothing of the reroute

    async def followed():
        for member in (pods.east, pods.west):
            one = await selects(member, namespace, "web", PREFIXED)
            assert [port["port"] for port in one["spec"]["ports"]] == [81], member.name
        return True

    await eventually(followed, within=PATIENCE)
    await pods.delete("deployment", "web")
    east = await selects(pods.east, namespace, "web", {"app": "web"})
    assert not {*ANNOTATIONS, keys.ORIGINAL_SELECTOR, keys.GLOBAL_SERVICE, keys.REROUTED} & {
        *east["metadata"].get("annotations", {})
    }
    await has_gone(pods.west, namespace, "service", "web")


async def test_users_who_write_meanwhile_lose_nothing_and_are_not_fought(federation, namespace, nodes, pods):
    """Each manifest that is applied is rerouted with one write, and no edit is overwritten."""
    await pods.apply(a_deployment("web", 1), a_service())
    await selects(pods.east, namespace, "web", PREFIXED)
    before = len(rerouting(pods.east, namespace))
    turns = 8

    async def apply():
        for turn in range(turns):
            await pods.apply(a_service(sessionAffinity="ClientIP", ports=[{"port": 80 + turn}]))

    async def edit():
        for turn in range(turns):
            await pods.east.kubectl("-n", namespace, "label", "service", "web", f"turn={turn}", "--overwrite")

    async def replace():
        for turn in range(turns):
            patch = {"spec": {"selector": {"app": "web", keys.FEDERATION + "/app": None}}}
            patch["metadata"] = {"annotations": {"example.com/turn": f"{turn}"}}
            await pods.east.kubectl("-n", namespace, "patch", "service", "web", "--type=merge", "-p", json.dumps(patch))

    await asyncio.gather(apply(), edit(), replace())
    for member in (pods.east, pods.west):

        async def last(member=member):
            one = await selects(member, namespace, "web", PREFIXED, turn=f"{turns - 1}")
            assert one["metadata"]["annotations"]["example.com/turn"] == f"{turns - 1}"
            assert (one["spec"]["sessionAffinity"], one["spec"]["ports"][0]["port"]) == ("ClientIP", 80 + turns - 1)
            return True

        await eventually(last, within=PATIENCE)
    await is_logged(pods.east, namespace)
    accepted = [one for one in rerouting(pods.east, namespace)[before:] if one["responseStatus"]["code"] == 200]
    assert len(accepted) <= 3 * turns, len(accepted)
    await is_logged(pods.east, namespace)
    assert [one for one in rerouting(pods.east, namespace)[before:] if one["responseStatus"]["code"] == 200] == accepted


async def is_logged(member, namespace):
    """Wait until all requests so far are in the audit log, which has them in order."""
    marker = fresh_name()
    assert await member.find("configmap", marker, namespace=namespace) is None

    async def look():
        assert member.audit(f"/namespaces/{namespace}/configmaps/{marker}"), "the audit log has no entry for it"
        return True

    await eventually(look, within=PATIENCE)


def rerouting(member, namespace):
    """The agent's writes of Services in its own cluster."""
    writes = (one for one in member.requests(agent=AGENT) if one["verb"] == "patch")
    return [one for one in writes if one["requestURI"].startswith(f"/api/v1/namespaces/{namespace}/services/web?")]


async def test_any_global_service_is_copied_and_ingresses_follow(federation, namespace, nodes, pods):
    """Of ordinary pods, headless, with labels that keep their keys; a Service that is not global stays alone."""
    headless = {"selector": {"app": "db"}, "clusterIP": "None", "ipFamilyPolicy": "PreferDualStack"}
    await pods.apply(
        a_service("db", annotations={"io.cilium/global-service": "true"}, **headless),
        a_service("local", selector={"app": "local"}),
        a_deployment("web", 1, annotations={keys.NO_PREFIX: "^app="}),
        a_service("web", annotations={keys.NO_PREFIX: "^app="}),
        *(an_ingress(name) for name in ("web", "local")),
    )
    copy = await selects(pods.west, namespace, "db", {"app": "db"})
    assert copy["spec"]["clusterIP"] == "None"
    await selects(pods.west, namespace, "web", {"app": "web"})

    async def follows():
        ingress = await pods.west.find("ingress", "web", namespace=namespace)
        assert ingress is not None
        assert ingress["spec"]["rules"][0]["host"] == "web.example.com"
        return True

    await eventually(follows, within=PATIENCE)
    for kind in ("service", "ingress"):
        assert await pods.west.find(kind, "local", namespace=namespace) is None
    await pods.east.kubectl("-n", namespace, "annotate", "service", "db", "io.cilium/global-service-")
    await has_gone(pods.west, namespace, "service", "db")
    await pods.delete("deployment/web", "service/web")
    for kind in ("service", "ingress"):
        await has_gone(pods.west, namespace, kind, "web")
    assert await pods.east.find("ingress", "web", namespace=namespace) is not None


async def test_endpoints_stand_beside_services_where_pod_networks_are_joined(federation, namespace, nodes, pods):
    await federation.agents.pop("east").stop()
    await federation.start("east", flags=("--pod-networks", f"{namespace}/west=10.0.0.0/8,192.168.0.0/16"))
    other = a_service("db", annotations={ANNOTATIONS[1]: "true"}, selector={"app": "db"})
    await pods.apply(a_deployment("web", 4), a_service(), other)
    await pods.rolled_out("web")
    east, west = [await federation.delegates(one, namespace) for one in (pods.east, pods.west)]
    addresses = [one["status"]["podIP"] for one in (*east, *west)]
    for member in (pods.east, pods.west):
        await leads_to(member, namespace, addresses)
    copies = [one for one in await pods.west.all("endpointslices", namespace=namespace) if stamped(one)]
    assert {one["metadata"]["labels"]["kubernetes.io/service-name"] for one in copies} <= {"web", "db"}
    victim = west[0]
    elsewhere = json.dumps({"status": {"podIP": "172.16.0.1", "podIPs": [{"ip": "172.16.0.1"}]}})
    await pods.west.kubectl(
        *(
            "-n",
            namespace,
            "patch",
            "pod",
            victim["metadata"]["name"],
            "--subresource",
            "status",
            "--type=merge",
            "-p",
            elsewhere,
        )
    )

    async def refused():
        events = await pods.east.all("events", namespace=namespace)
        return [one for one in events if one["reason"] == "AddressNotAllowed" and "172.16.0.1" in one["message"]]

    await eventually(refused, within=PATIENCE)
    await leads_to(pods.east, namespace, [one["status"]["podIP"] for one in (*east, *west[1:])])
    await federation.agents.pop("east").stop()
    await federation.start("east")  # without the flag: what it made is deleted

    async def gone():
        for member in (pods.east, pods.west):
            slices = await member.all("endpointslices", namespace=namespace)
            managers = {one["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] for one in slices}
            assert managers == {"endpointslice-controller.k8s.io"}, (member.name, managers)
        return True

    await eventually(gone, within=PATIENCE)


async def test_an_exported_service_is_imported_in_the_targets(federation, namespace, nodes, pods):
    """With the delegates in all clusters as endpoints, until its ServiceExport is deleted."""
    for name, flags in (("west", ()), ("east", ("--pod-networks", "10.0.0.0/8", "--cluster-name", "hamburg"))):
        await federation.agents.pop(name).stop()
        await federation.start(name, flags=("--multicluster-services", *flags))
    await pods.apply(a_deployment("web", 4), a_service(), an_export("web"), an_export("missing"))
    await pods.rolled_out("web")
    addresses = [
        one["status"]["podIP"] for each in (pods.east, pods.west) for one in await federation.delegates(each, namespace)
    ]
    for member in (pods.east, pods.west):

        async def imported(member=member):
            found = await member.find("serviceimport", "web", namespace=namespace)
            assert found["spec"]["type"] == "ClusterSetIP"
            assert [port["port"] for port in found["spec"]["ports"]] == [80]
            labels = f"{keys.EXPORTED_SERVICE}=web,{keys.EXPORTING_CLUSTER}=hamburg"
            slices = await member.all("endpointslices", namespace=namespace, labels=labels)
            assert sorted(a for one in slices for e in one["endpoints"] for a in e["addresses"]) == sorted(addresses)
            [derived] = {one["metadata"]["labels"]["kubernetes.io/service-name"] for one in slices}
            service = await member.find("service", derived, namespace=namespace)
            assert found["spec"]["ips"] == service["spec"]["clusterIPs"]
            return "selector" not in service["spec"]

        await eventually(imported, within=PATIENCE)
    for name, valid, reason in (("web", "True", "Valid"), ("missing", "False", "NoService")):
        export = await pods.east.find("serviceexport", name, namespace=namespace)
        conditions = {one["type"]: (one["status"], one["reason"]) for one in export["status"]["conditions"]}
        assert conditions == {"Valid": (valid, reason), "Conflict": ("False", "NoConflict")}
    await is_reported_while_its_derived_service_is_taken(pods, namespace)
    await pods.delete("serviceexport", "web")

    async def withdrawn():
        for member in (pods.east, pods.west):
            assert await member.all("serviceimports", namespace=namespace) == []
            assert await member.all("endpointslices", namespace=namespace, labels=keys.EXPORTED_SERVICE) == []
            assert await member.all("services", namespace=namespace, labels=keys.EXPORTED_SERVICE) == []
        return True

    await eventually(withdrawn, within=PATIENCE)
    for name in ("east", "west"):
        await federation.agents.pop(name).stop()


async def is_reported_while_its_derived_service_is_taken(pods, namespace):
    """On the ServiceExport by its own cluster, on the ServiceImport by a target, until that Service is deleted."""
    cases = {"here": (pods.east, "serviceexport"), "there": (pods.west, "serviceimport")}
    taken = {name: exports.derived_name(NamespacedName(namespace, name)) for name in cases}
    for name, (member, _) in cases.items():
        await member.kubectl("-n", namespace, "create", "service", "clusterip", taken[name], "--tcp=80")
        await pods.apply(a_service(name), an_export(name))

    async def reported():
        for name, (member, kind) in cases.items():
            found = await member.find(kind, name, namespace=namespace)
            assert found is not None, f"no {kind} {name}"
            message = condition({"status": found.get("status") or {}}, "Conflict").get("message", "")
            assert f"a Service {taken[name]} exists" in message, found
        return True

    await eventually(reported, within=PATIENCE)
    for name, (member, _) in cases.items():
        assert (await member.find("service", taken[name], namespace=namespace))["metadata"].get(
            "ownerReferences"
        ) is None
        await member.kubectl("-n", namespace, "delete", "service", taken[name])

    async def solved():
        for name, (member, kind) in cases.items():
            found = await member.find(kind, name, namespace=namespace)
            assert found is not None, f"no {kind} {name}"
            assert condition(found, "Conflict")["status"] == "False", found
            imported = await member.find("serviceimport", name, namespace=namespace)
            assert imported["spec"].get("ips"), imported
        return True

    await eventually(solved, within=PATIENCE)
    await pods.delete("serviceexport", *cases)


def an_export(name):
    return {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport", "metadata": {"name": name}}


def stamped(obj):
    return keys.UPPER in obj["metadata"]["labels"]
