"""The kubelet API of virtual nodes of targets, one of which is the source itself. Nodes are simulated."""

import json

import kubelet_calls
from federation import a_deployment


async def test_the_nodes_of_targets_have_the_proxy_pods_that_are_bound_to_them(federation, namespace, nodes, pods):
    await pods.apply(a_deployment("web", 6))
    await pods.rolled_out("web")
    kube = pods.east.kubectl
    await kube("-n", namespace, "create", "serviceaccount", "lister")
    await kube("create", "clusterrole", namespace, "--verb=get", "--resource=nodes/pods")
    await kube(
        "create", "clusterrolebinding", namespace, f"--clusterrole={namespace}", f"--serviceaccount={namespace}:lister"
    )
    token = (await kube("-n", namespace, "create", "token", "lister")).strip()
    proxies = [
        one for one in await pods.east.all("pods", namespace=namespace) if one["metadata"]["name"].startswith("web")
    ]
    found = 0
    for name in nodes.values():
        node = await pods.east.find("node", name)
        port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        status, body = await kubelet_calls.call(port, "/pods", token=token)
        assert status == 200, body
        listed = {one["metadata"]["uid"] for one in json.loads(body)["items"]}
        assert listed == {one["metadata"]["uid"] for one in proxies if one["spec"].get("nodeName") == name}
        found += len(listed)
    assert found == 6
    await kube("delete", "clusterrole,clusterrolebinding", namespace)
