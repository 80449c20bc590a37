"""What of a message of the super cluster a tenant reads."""

import pytest

from hansa.kube.objects import Object
from hansa.model.translation.tenant import messages
from tenants import KEY, LINK


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f'pods "web" in {KEY}-shop', 'pods "web" in shop'),
        (
            'Post "https://10.0.0.1:6443/api/v1/namespaces/x/token": dial tcp 10.0.0.1:6443: connection refused',
            'Post "https://super-cluster/api/v1/namespaces/x/token": dial tcp super-cluster: connection refused',
        ),
        (
            'failed calling webhook "a": Post "https://a.ops.svc:443/check?timeout=10s": EOF',
            'failed calling webhook "a": Post "https://super-cluster/check?timeout=10s": EOF',
        ),
        ('Get "http://10.1.0.5:8080/healthy": refused', 'Get "http://10.1.0.5:8080/healthy": refused'),
    ],
)
def test_a_message_names_neither_super_namespaces_nor_servers_of_the_super_cluster(said, shown):
    assert messages.tenant_message(said, LINK) == shown


def test_so_does_a_status():
    said = f'Post "https://10.0.0.1:6443/api/v1": no token in {KEY}-shop'
    lower = Object.of({"kind": "Pod", "metadata": {}, "status": {"message": said}})
    found = messages.with_tenant_status(lower, "shop", KEY).status["message"]
    assert found == 'Post "https://super-cluster/api/v1": no token in shop'
