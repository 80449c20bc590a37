"""Sources and targets as their administrators see them: rights of sources, refused objects, exported credentials."""

import base64

import yaml

from eventually import eventually
from federation import API, a_source, a_target
from league import PATIENCE, fresh_name


async def may(member, account, verb, what, namespace="default"):
    """Whether a service account may do this."""
    as_account = f"system:serviceaccount:{account[0]}:{account[1]}"
    code, _, _ = await member.kubectl.run("auth", "can-i", verb, what, "-n", namespace, "--as", as_account)
    return code == 0


async def left(member, names, namespace):
    """Objects of a source that are still there; each name is `kind/name`."""
    return [one for one in names if await member.find(one, namespace=namespace) is not None]


async def test_a_source_gets_rights_in_its_namespace_only_and_they_go_with_it(federation, namespace):
    west, account = federation.members["west"], (namespace, "c1")
    await west.kubectl.apply(a_source("c1", namespace))
    await federation.ready(west, "source", "c1", namespace=namespace)
    made = await west.find("serviceaccount", "c1", namespace=namespace)
    assert made["secrets"] == [{"name": "c1-token"}]  # as before Kubernetes 1.24, for the recipe with kubectl and jq

    async def filled():
        return (await west.find("secret", "c1-token", namespace=namespace))["data"]["token"]

    assert await eventually(filled, within=PATIENCE)
    for verb, what, where, allowed in (
        ("create", "pods", namespace, True),
        ("create", "pods", "default", False),
        ("list", "secrets", "default", False),
        ("create", "rolebindings", namespace, False),
        ("list", "nodes", "default", False),
        ("list", "clustersummaries.multicluster.admiralty.io", "default", True),
        ("delete", "clustersummaries.multicluster.admiralty.io", "default", False),
    ):
        assert await may(west, account, verb, what, where) == allowed, (verb, what, where)
    await west.kubectl("-n", namespace, "delete", "rolebinding", "admiralty-source-c1")
    await west.kubectl("-n", namespace, "delete", "source", "c1", "--timeout=60s")
    rest = ["serviceaccount/c1", "secret/c1-token", "rolebinding/admiralty-source-c1"]
    assert await left(west, rest, namespace) == []
    bindings = await west.kubectl.get("clusterrolebindings")
    assert namespace not in str([one["metadata"]["name"] for one in bindings["items"]])


async def test_accounts_and_bindings_of_others_are_left(federation, namespace):
    west = federation.members["west"]
    await west.kubectl("-n", namespace, "create", "serviceaccount", "own")
    await west.kubectl("-n", namespace, "create", "rolebinding", "admiralty-source-taken", "--clusterrole=view")
    await west.kubectl.apply(a_source("own", namespace), a_source("taken", namespace))
    await federation.ready(west, "source", "own", namespace=namespace)
    taken = await federation.ready(west, "source", "taken", namespace=namespace, status="False")
    assert (taken["reason"], "admiralty-source-taken" in taken["message"]) == ("NameTaken", True)
    await west.kubectl("-n", namespace, "delete", "source", "own", "taken", "--timeout=60s")
    assert await left(west, ["serviceaccount/own", "rolebinding/admiralty-source-taken"], namespace) == [
        "serviceaccount/own",
        "rolebinding/admiralty-source-taken",
    ]


async def test_invalid_sources_and_targets_are_refused_and_valid_ones_are_listed(federation, namespace, nodes):
    east = federation.members["east"]
    metadata = {"name": "bad", "namespace": namespace}
    both = {"self": True, "kubeconfigSecret": {"name": "x"}}
    for kind, spec, text in (
        ("Target", both, "either self: true or kubeconfigSecret"),
        ("Target", {}, "either self: true or kubeconfigSecret"),
        ("Target", {"self": False}, "either self: true or kubeconfigSecret"),
        ("ClusterTarget", {}, "either self: true or kubeconfigSecret"),
        ("ClusterTarget", {"kubeconfigSecret": {"name": "x"}}, "spec.kubeconfigSecret.namespace"),
        ("Source", {}, "set serviceAccountName, userName or both"),
        ("ClusterSource", {"serviceAccount": {"name": "x"}}, "spec.serviceAccount.namespace"),
    ):
        manifest = yaml.safe_dump({"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec})
        code, _, error = await east.kubectl.run("create", "-f", "-", stdin=manifest.encode())
        assert code, (kind, spec)
        assert text in error.decode(), error
    await east.kubectl(
        "-n", namespace, "create", "-f", "-", stdin=yaml.safe_dump(a_target("slow", namespace, self=True))
    )
    pattern = '{"spec": {"excludedLabelsRegexp": "(a+)+$"}}'
    await east.kubectl("-n", namespace, "patch", "target", "slow", "--type=merge", "-p", pattern)
    slow = await federation.ready(east, "target", "slow", namespace=namespace, status="False")
    assert slow["reason"] == "InvalidSpec"
    listed = await east.kubectl("-n", namespace, "get", "tg")
    assert listed.split("\n")[0].split() == ["NAME", "READY", "NODE", "SELF", "SECRET", "REASON", "AGE"]
    assert f"True    {nodes['west']}" in listed
    await east.kubectl("-n", namespace, "delete", "target", "slow", "--timeout=60s")


async def test_labels_of_all_nodes_are_labels_of_the_virtual_node_unless_excluded(federation, namespace, nodes):
    east, west = federation.members["east"], federation.members["west"]
    try:
        await west.kubectl("label", "nodes", "--all", "tier=gold", "color=red", "--overwrite")
        await east.kubectl("-n", namespace, "patch", "target", "west", "--type=merge", "-p", EXCLUDING)

        async def look():
            node = await east.find("node", nodes["west"])
            labels = node["metadata"]["labels"]
            assert (labels.get("tier"), labels.get("color")) == ("gold", None), labels
            assert labels["virtual-kubelet.io/provider"] == "admiralty"
            summary = await west.find("clustersummary", "singleton")
            assert node["status"]["capacity"] == summary["capacity"]
            [taint] = node["spec"]["taints"]
            return taint["key"] == "virtual-kubelet.io/provider"

        assert await eventually(look, within=PATIENCE)
    finally:
        await west.kubectl("label", "nodes", "--all", "tier-", "color-")


EXCLUDING = '{"spec": {"excludedLabelsRegexp": "^color="}}'


async def test_without_the_source_controller_rights_are_left_to_the_administrator(federation, namespace):
    west = federation.members["west"]
    await federation.kill("west")
    await federation.start("west", flags=("--no-source-controller",))
    try:
        await west.kubectl.apply(a_source("c1", namespace))
        await west.kubectl("-n", namespace, "create", "serviceaccount", "by-hand")
        secret = await federation.export("west", "by-hand", name="c2", namespace=namespace)
        assert secret["data"]["token"]
        source = await west.find("source", "c1", namespace=namespace)
        assert "status" not in source
        assert await west.find("serviceaccount", "c1", namespace=namespace) is None
    finally:
        await federation.kill("west")
        await federation.start("west")
    await federation.ready(west, "source", "c1", namespace=namespace)


async def test_an_export_replaces_what_the_source_reaches_otherwise(federation, namespace, tmp_path):
    west, ca = federation.members["west"], tmp_path / "ca.crt"
    ca.write_text("another CA")
    await west.kubectl("-n", namespace, "create", "serviceaccount", "c1")
    name, server = fresh_name(), "https://west.example.com"
    flags = ("--server", server, "--ca-file", str(ca), "--duration", "600")
    secret = await federation.export("west", "c1", name=name, namespace=namespace, flags=flags)
    assert secret["metadata"] == {"name": name}
    data = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    config = yaml.safe_load(data.pop("config"))
    assert (data["server"], data["ca.crt"], data["namespace"]) == (server, "another CA", namespace)
    assert config["clusters"][0]["cluster"]["server"] == server
    assert config["users"] == [{"name": name, "user": {"token": data["token"]}}]
    assert config["current-context"] == name
    assert await west.all("secrets", namespace=namespace) == []  # a short-lived token is kept nowhere
