"""The Lease of a member, written to an API server that does not answer."""

import asyncio

from hansa.control.sharding.leases import Group, Keys
from hansa.control.sharding.member_lease import MemberLease
from hansa.control.sharding.share import Peer
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.login import Login
from hansa.runtime import clock, metrics
from scripted_server import request_head, serving

GROUP = Group("g", "default", Keys("example.com/group", "example.com/claims", "example.com/leaving"))
DEADLINE = 0.2


async def test_the_deletion_of_a_members_lease_ends_at_its_deadline():
    """Else the renewal of this member's own Lease would wait for it."""
    asked = asyncio.Event()

    async def silence(reader, _writer):
        await request_head(reader)
        asked.set()
        await asyncio.get_running_loop().create_future()

    async with serving(silence) as port:
        credentials = Credentials(lambda: Login(server=f"http://127.0.0.1:{port}", origin="a test"))
        async with Client(credentials, user_agent="test", deadline=60.0) as client:
            lease = MemberLease(GROUP, "me", client, clock=clock.SystemClock(), metrics=metrics.Registry())
            async with asyncio.timeout(30.0):
                await lease.forget(Peer("other", "uid 1", claims=0, seconds=8.0), deadline=DEADLINE)
    assert asked.is_set()
