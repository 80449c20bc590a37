"""Two tenants of one pool, each with a control plane of its own."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from eventually import eventually
from hansa.kube import resources
from hansa.local import ClusterSpec
from hansa.tenancy import api
from pool_league import announce
from programs import Refused
from tenant_league import clusters_up

ADMISSION = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "nothing-moves"}}
SAME = "object.metadata.annotations == oldObject.metadata.annotations"
REFUSAL = "nothing moves now"
ONE_CPU = '{"cpu":"1"}'  # each super cluster has 4


@pytest.fixture(scope="module")
async def green(fleet, kubectl):
    """The control plane of another tenant."""
    wish = ClusterSpec("scheduled-green", scheduler=False, lift_limits=True)
    async with clusters_up(fleet, kubectl, [wish]) as made:
        yield made[wish.name]


@pytest.fixture
async def other(pool, green):
    """The pool as this tenant sees it."""
    await announce(pool.meta, "green", green)
    other = replace(pool, meta=green)
    yield other
    await green.kubectl("delete", "quota", "--all", "-A")
    await other.empty()
    await pool.meta.client.delete(api.VIRTUAL_CLUSTERS, "green", namespace="default")


async def test_of_two_tenants_that_want_the_last_slice_one_gets_it_and_the_other_waits_for_capacity(
    pool, other, namespace, another
):
    await pool.empty()
    await pool.namespace(another, {"cpu": "7"}, slice_=ONE_CPU)
    await pool.placed_somehow(another)
    tenants = [pool, other]
    for tenant in tenants:
        await tenant.namespace(namespace, slice_=ONE_CPU)
    await asyncio.gather(*(tenant.quota(namespace, cpu="1") for tenant in tenants))
    done, waiting = await asyncio.wait(
        [asyncio.create_task(tenant.placed_somehow(namespace), name=tenant.meta.name) for tenant in tenants],
        return_when=asyncio.FIRST_COMPLETED,
    )
    [winner], [loser] = (
        [tenant for tenant in tenants if tenant.meta.name in {task.get_name() for task in tasks}]
        for tasks in (done, waiting)
    )
    reported = "1 slice is not placed (1 CPU): r1 has 0 CPU left, a slice needs 1 CPU; r2 has 0 CPU left"
    await loser.condition(namespace, "InsufficientCapacity", message=reported)
    assert (await loser.meta.event("InsufficientCapacity", namespace))["message"].startswith(reported)
    await loser.placed(namespace, {})
    await winner.meta.client.delete(resources.QUOTAS, "all", namespace=namespace)
    await asyncio.gather(*waiting)
    await winner.placed(namespace, {})


async def test_what_a_tenant_held_is_free_when_it_is_gone(pool, other, namespace):
    await pool.empty()
    await other.namespace(namespace, {"cpu": "8"}, slice_=ONE_CPU)
    await other.placed(namespace, {"r1": 4, "r2": 4})
    await pool.namespace(namespace, {"cpu": "2"}, slice_=ONE_CPU)
    await pool.condition(namespace, "InsufficientCapacity")
    await pool.meta.client.delete(api.VIRTUAL_CLUSTERS, "green", namespace="default")
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await announce(pool.meta, "green", other.meta)


async def test_a_tenant_that_does_not_answer_keeps_its_slices(pool, other, namespace):
    await pool.empty()
    await other.namespace(namespace, {"cpu": "6"}, slice_=ONE_CPU)
    await other.placed(namespace, {"r1": 3, "r2": 3})
    offset = pool.log.stat().st_size
    with other.meta.frozen():
        await pool.logged("cluster unreachable", after=offset)
        await pool.namespace(namespace, {"cpu": "4"}, slice_=ONE_CPU)
        await pool.placed(namespace, {"r1": 1, "r2": 1})
        await pool.condition(namespace, "InsufficientCapacity")


@contextlib.asynccontextmanager
async def refusing(side, namespace):
    """A tenant's API server refuses meanwhile that annotations of namespaces change."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["namespaces"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": SAME, "message": REFUSAL}]}
    binding = {"policyName": "nothing-moves", "validationActions": ["Deny"]}
    await side.kubectl.apply(
        {**ADMISSION, "kind": "ValidatingAdmissionPolicy", "spec": spec},
        {**ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    )

    async def does():
        try:
            await side.kubectl("annotate", "namespace", namespace, "a=b", "--dry-run=server", "--overwrite")
        except Refused as error:
            return REFUSAL in str(error)
        return False

    try:
        await eventually(does)
        yield
    finally:
        await side.kubectl("delete", "validatingadmissionpolicybinding", "nothing-moves")


async def test_released_slices_are_free_only_when_the_namespace_is_written(pool, other, namespace):
    await pool.empty()
    await other.namespace(namespace, {"cpu": "8"}, slice_=ONE_CPU)
    await other.placed(namespace, {"r1": 4, "r2": 4})
    async with refusing(other.meta, namespace):
        offset = pool.log.stat().st_size
        await other.quota(namespace, cpu="2")
        await pool.logged(REFUSAL, after=offset)
        await pool.namespace(namespace, {"cpu": "2"}, slice_=ONE_CPU)
        await pool.condition(namespace, "InsufficientCapacity")
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    await other.placed(namespace, {"r1": 1, "r2": 1})
