"""Whether pods can be created in a tenant that has just started."""

import yaml

from hansa.kube import readiness
from hansa.tenancy.operator import tenant_client
from hansa.tenancy.operator.pki import ADMIN, Pki


def with_kubeconfig(path):
    """The keys of a tenant whose administrator has this kubeconfig."""
    return Pki({}, {ADMIN: path.read_bytes()})


async def test_pods_can_be_created_once_the_service_account_is_there(cluster, client):
    assert await readiness.can_create_pods(client)
    assert not await readiness.can_create_pods(client, "no-such-namespace")
    assert not await tenant_client.refuses_pods(with_kubeconfig(cluster.kubeconfig))


async def test_a_tenant_that_cannot_be_reached_is_not_waited_for(cluster, tmp_path):
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    (tmp_path / "away").write_text(yaml.safe_dump(config))
    assert not await tenant_client.refuses_pods(with_kubeconfig(tmp_path / "away"))
