"""What a tenant learns of the super cluster, and with which certificates it would get further."""

import pytest

from hansa.kube import resources
from tenant_league import pod

pytestmark = pytest.mark.timeout(180)


async def test_events_do_not_tell_where_the_api_server_of_the_super_cluster_is(mallory, below, namespace):
    await below.there(resources.NAMESPACES, mallory.below(namespace))
    await below.make(resources.QUOTAS, "none", mallory.below(namespace), spec={"hard": {"pods": "0"}})
    await mallory.make(resources.PODS, "web", namespace, **pod())
    event = await mallory.event("Refused", "web", namespace)
    assert event["message"].startswith(f"cannot create pods {namespace}/web in super: ")
    server = (await below.client.credentials.access()).server
    refused = await mallory.there(resources.PODS, "web", namespace, when=lambda one: one["status"].get("conditions"))
    assert server.removeprefix("https://") not in f"{event} {refused}"
