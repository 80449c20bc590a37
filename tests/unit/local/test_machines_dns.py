"""The objects of cluster DNS have no fields that would make it unreachable."""

from ipaddress import IPv4Address

from hansa.local.machines import dns, images, node


def test_cluster_dns_has_its_address_and_its_own_rights() -> None:
    objects = {manifest["kind"]: manifest for manifest in dns.manifests(IPv4Address("10.1.0.10"))}
    assert objects["Service"]["spec"]["clusterIP"] == "10.1.0.10"
    assert objects["Service"]["metadata"]["name"] == "kube-dns"
    binding = objects["ClusterRoleBinding"]
    assert binding["roleRef"]["name"] == objects["ClusterRole"]["metadata"]["name"]
    assert binding["subjects"][0]["name"] == objects["ServiceAccount"]["metadata"]["name"]
    assert {verb for rule in objects["ClusterRole"]["rules"] for verb in rule["verbs"]} == {"list", "watch"}


def test_cluster_dns_runs_on_real_nodes_only_and_never_asks_itself() -> None:
    [deployment] = [m for m in dns.manifests(IPv4Address("10.1.0.10")) if m["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == node.REAL_LABEL
    assert pod["dnsPolicy"] == "Default"
    assert pod["containers"][0]["image"] == images.COREDNS
