"""The Lease of a virtual node, and clocks that step back."""

import datetime
import secrets

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.nodes import lease

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)


async def test_a_renewal_is_later_than_the_last_one_also_after_a_restart_with_another_clock(client):
    name = f"lease-{secrets.token_hex(4)}"
    made = Object.of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    node = await client.create(resources.NODES, made)

    async def time():
        return lease.renewed(await client.get(resources.LEASES, name, namespace=lease.NAMESPACE))

    first = lease.NodeLease(client, seconds=40)
    for now, wanted in ((NOW, NOW), (NOW + HOUR, NOW + HOUR), (NOW, NOW + HOUR + lease.STEP)):
        await first.renew(node, now)
        assert await time() == wanted
    again = lease.NodeLease(client, seconds=40)
    await again.renew(node, NOW)
    assert await time() == NOW + HOUR + 2 * lease.STEP
    await again.renew(node, NOW + 2 * HOUR)
    assert await time() == NOW + 2 * HOUR
    await client.delete(resources.NODES, name)
