"""In which order the super cluster is asked for a page."""

import asyncio

import pytest

from hansa.kubelet.pages import Page
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.tenants import node_page
from hansa.kubelet.tenants.tenant import Tenant

OURS = Tenant("default-0-a", "default", "a")


class NoKubelet:
    """A super cluster without a report."""

    lists = 0

    async def pods(self, _):
        self.lists += 1
        return []

    async def report(self, _):
        raise Refusal(501, "not served")


@pytest.mark.parametrize("page", [Page.RUNNING_PODS, Page.STATS, Page.METRICS])
def test_a_page_that_is_not_served_lists_no_pods(page):
    below = NoKubelet()
    with pytest.raises(Refusal, match="not served"):
        asyncio.run(node_page.body(page, OURS, below))
    assert below.lists == 0


def test_health_asks_nobody():
    assert asyncio.run(node_page.body(Page.HEALTH, OURS, NoKubelet())) == b"ok"
