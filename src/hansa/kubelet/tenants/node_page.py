"""The answer to a tenant's request about a whole node."""

import asyncio

from hansa.kubelet.pages import Page
from hansa.kubelet.tenants.below import Below
from hansa.kubelet.tenants.lists import OwnPods
from hansa.kubelet.tenants.tenant import Tenant


async def body(page: Page, tenant: Tenant, below: Below) -> bytes:
    """The body of a page; raises a Refusal. What is below may refuse a page: it is asked before it lists pods."""
    if page is Page.HEALTH:
        return b"ok"
    report = b"" if page is Page.PODS else await below.report(page)
    own = OwnPods(tenant, await below.pods(tenant))
    return await (asyncio.to_thread(own.pods) if page is Page.PODS else asyncio.to_thread(own.report, page, report))
