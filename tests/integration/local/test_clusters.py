"""Local clusters on real processes."""

from hansa.kube import resources


async def test_a_shared_cluster_answers(client):
    assert await client.version() == "v1.35.8"
    page = await client.list(resources.NODES)
    assert len(page.items) == 2


async def test_a_fresh_cluster_is_the_tests_own(fresh_cluster):
    mine = await fresh_cluster(scheduler=False)
    assert mine.missing() == []
