"""What is said and forecast about namespaces and pods in a pool."""

import dataclasses

import pytest

from forecast_worlds import TENANT, a_space, a_tenant_pod, fates, owned, pool_forecast
from hansa.kube.language import quantity
from hansa.kube.objects import NamespacedName
from hansa.scheduling.forecasting import namespace_answers, pool_answers
from hansa.scheduling.forecasting.changes import AddNode, Drain, InvalidChange, Lose, Quota
from hansa.scheduling.forecasting.forecast import forecast
from scheduling_things import a_node

CPU = quantity.UNIT


def key(name, namespace="shop"):
    return NamespacedName(f"{TENANT}/{namespace}", name)


def test_a_pod_that_is_larger_than_its_slices_in_any_cluster_would_fit_with_more():
    pod = a_tenant_pod("web", cpu="2")
    world = pool_forecast(
        [a_space("shop", cpu="2", slices={"r1": 1, "r2": 1})], [pod], r1=[a_node("n1")], r2=[a_node("n1", cpu="1")]
    ).pool
    answers = {one.cluster: str(one) for one in pool_answers.answers(world, key("web"), pod)}
    assert answers["r1"] == (
        "Insufficient cpu in the namespace's slices (requested 2, left 1);"
        " would fit if namespace shop had 2 slice(s) there instead of 1"
    )
    assert "would fit" not in answers["r2"], "r2 has no room for a second slice"
    quota = pool_answers.larger_quota(world, key("web"), pod)
    assert quota.parts() == ("the ResourceQuota of namespace shop was cpu=3: then it fits in r1",)


def test_a_larger_quota_is_not_named_where_the_pool_is_full():
    pod = a_tenant_pod("web", cpu="9")
    world = pool_forecast([a_space("shop", cpu="1", slices={"r1": 1})], [pod], r1=[a_node("n1")]).pool
    assert pool_answers.larger_quota(world, key("web"), pod) is None


def test_a_cluster_without_slices_says_so():
    pod = a_tenant_pod("web")
    world = pool_forecast([a_space("shop", cpu="1", slices={"r1": 1})], [pod], r1=[a_node("n1")], r2=[a_node("n1")])
    answers = {one.cluster: str(one) for one in pool_answers.answers(world.pool, key("web"), pod)}
    assert answers["r1"] == "fits on node n1"
    assert answers["r2"].startswith("the namespace has no slices there; would fit if namespace shop had 1 slice(s)")


def test_a_namespace_is_explained_by_what_each_cluster_would_need():
    found = pool_forecast(
        [a_space("shop", cpu="6", slices={"r1": 4})], [], r1=[a_node("n1")], r2=[a_node("n1", cpu="1")]
    )
    explained = namespace_answers.explained(found.pool, found.pool.spaces[f"{TENANT}/shop"])
    assert (explained.wanted, explained.placed, explained.planned) == (6, {"r1": 4}, {"r1": 4, "r2": 1})
    assert explained.missing.startswith("1 slice is not placed (1 CPU)")
    lacks = {one.cluster: one.lacks for one in explained.clusters}
    assert lacks == {"r1": {"cpu": CPU}, "r2": {"cpu": CPU}}
    more = forecast(found, [AddNode("r2", {"cpu": CPU, "pods": 10 * CPU})])
    assert [one.then for one in more.slices] == [{"r1": 4, "r2": 2}], "what it said is enough"


def test_slices_and_pods_of_a_lost_cluster_go_where_there_is_room():
    spaces = [a_space("shop", cpu="3", slices={"r1": 2, "r2": 1})]
    pods = [
        owned(a_tenant_pod("moves", cluster="r1", on="n1")),
        a_tenant_pod("bare", cluster="r1", on="n1"),
        owned(a_tenant_pod("stays", cluster="r2", on="n1")),
    ]
    found = forecast(pool_forecast(spaces, pods, r1=[a_node("n1")], r2=[a_node("n1", cpu="2")]), [Lose("r1")])
    assert fates(found) == {"moves": ("moves", "r2"), "bare": ("ends", "")}
    [slices] = found.slices
    assert (slices.now, slices.then) == ({"r1": 2, "r2": 1}, {"r2": 2})
    assert slices.reason.startswith("1 slice is not placed (1 CPU): r1 is unreachable for good; r2 has 0 CPU left")
    assert found.unaffected == 1


def test_the_dns_of_a_tenant_needs_no_slices_where_another_namespace_has_some():
    spaces = [a_space("shop", cpu="2", slices={"r1": 1, "r2": 1}), a_space("kube-system", cpu="0")]
    pods = [owned(a_tenant_pod(f"dns-{name}", cluster=name, on="n1", namespace="kube-system")) for name in ("r1", "r2")]
    world = pool_forecast(spaces, pods, r1=[a_node("n1")], r2=[a_node("n1")])
    world = dataclasses.replace(world, pool=dataclasses.replace(world.pool, unsliced=frozenset({"kube-system"})))
    assert set(fates(forecast(world, [Lose("r1")]))) == {"dns-r1"}
    answers = pool_answers.answers(world.pool, key("dns-r2", "kube-system"), pods[1])
    assert [one.fits for one in answers] == [True, True]


def test_a_larger_quota_starts_a_pending_pod_and_a_smaller_one_keeps_what_runs():
    spaces = [a_space("shop", cpu="2", slices={"r1": 1, "r2": 1})]
    pods = [a_tenant_pod("large", cpu="2"), owned(a_tenant_pod("web", cluster="r1", on="n1"))]
    world = pool_forecast(spaces, pods, r1=[a_node("n1")], r2=[a_node("n1")])
    more = forecast(world, [Quota("shop", {"cpu": 4 * CPU})])
    assert fates(more) == {"large": ("starts", "r2")}
    assert more.slices[0].then == {"r1": 2, "r2": 2}
    less = forecast(world, [Quota("shop", {"cpu": CPU})])
    assert less.slices[0].then == {"r1": 1}
    assert fates(less)["large"][0] == "pends"


def test_a_drained_node_takes_its_capacity_from_slices_and_its_pods_are_created_again():
    spaces = [a_space("shop", cpu="2", slices={"r1": 1, "r2": 1})]
    pods = [owned(a_tenant_pod("web", cluster="r1", on="n1")), a_tenant_pod("bare", cluster="r1", on="n1", cpu="0")]
    world = pool_forecast(spaces, pods, r1=[a_node("n1", cpu="1"), a_node("n2", cpu="1")], r2=[a_node("n1")])
    assert fates(forecast(world, [Drain("r1", "n1")])) == {"web": ("moves", "r2"), "bare": ("ends", "")}


def test_a_namespace_of_several_tenants_has_to_be_named_with_its_tenant():
    spaces = [a_space("shop", cpu="1"), dataclasses.replace(a_space("shop", cpu="1"), tenant="other")]
    world = dataclasses.replace(
        pool_forecast(spaces, [], r1=[a_node("n1")]), names={TENANT: "default/blue", "other": "o/red"}
    )
    with pytest.raises(InvalidChange, match="several tenants: use one of default/blue/shop, o/red/shop"):
        forecast(world, [Quota("shop", {"cpu": CPU})])
    found = forecast(world, [Quota("o/red/shop", {"cpu": 2 * CPU})])
    assert {one.namespace: one.then for one in found.slices} == {
        "default/blue/shop": {"r1": 1},
        "o/red/shop": {"r1": 2},
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Lose("r9"), "there is no super cluster r9 in the pool; known: r1"),
        (Drain("r1", "n9"), "cluster r1 has no node n9"),
        (Quota("nowhere", {}), "no tenant has a namespace nowhere"),
    ],
)
def test_what_does_not_exist_is_named(change, message):
    with pytest.raises(InvalidChange, match=message):
        forecast(pool_forecast([a_space("shop", cpu="1")], [], r1=[a_node("n1")]), [change])
