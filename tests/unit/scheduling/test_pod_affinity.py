"""Pod affinity, anti-affinity and topology spread, evaluated outside the cluster."""

import datetime

import pytest

from hansa.scheduling import evaluation, pod_affinity_terms, pod_request
from scheduling_things import HOST, ZONE, a_node, a_pod, a_view, answer, apart, near, term

WEB = {"app": "web"}
SPREAD = "node(s) didn't match pod topology spread constraints"
NODES = [a_node(f"n{number}", labels={ZONE: "abc"[number // 2]}) for number in range(6)]  # n0 n1 in a, n2 n3 in b, …


def web(name, on):
    return a_pod(name, on=on, labels=WEB)


def spread(topology, most=1, **more):
    selector = {"matchLabels": WEB}
    return [
        {"topologyKey": topology, "maxSkew": most, "labelSelector": selector, "whenUnsatisfiable": "DoNotSchedule"}
        | more
    ]


def test_pod_affinity_places_a_pod_in_the_topology_domain_of_matching_pods():
    view = a_view(*NODES, web("w", "n3"))
    assert answer(a_pod(affinity=near(term(ZONE, **WEB))), view) == "r1/n2"
    assert answer(a_pod(affinity=near(term(HOST, **WEB))), view) == "r1/n3"


def test_pods_of_other_namespaces_count_only_if_they_are_named():
    elsewhere = a_pod("w", on="n3", labels=WEB, namespace="bank")
    view = a_view(*NODES, elsewhere)
    assert answer(a_pod(affinity=near(term(HOST, **WEB))), view) == "r1: 6 node(s) didn't match pod affinity rules"
    named = term(HOST, **WEB) | {"namespaces": ["bank"]}
    assert answer(a_pod(affinity=near(named)), view) == "r1/n3"


def test_the_first_pod_that_matches_its_own_affinity_fits_any_node_with_the_topology_label():
    first = a_pod(labels=WEB, affinity=near(term(ZONE, **WEB)))
    assert answer(first, a_view(a_node("m", cpu="16"), *NODES)) == "r1/n0"


def test_a_pod_that_matches_its_affinity_on_a_node_without_the_topology_label_does_not_make_others_the_second():
    view = a_view(*NODES, a_node("bare"), web("w", "bare"))
    assert answer(a_pod(labels=WEB, affinity=near(term(ZONE, **WEB))), view) == "r1/n0"


def test_a_pod_must_match_all_terms_to_be_near():
    half = a_view(*NODES, web("w", "n3"), a_pod("d", on="n0", labels={"tier": "back"}))
    asking = a_pod(affinity=near(term(ZONE, **WEB), term(ZONE, tier="back")))
    assert answer(asking, half) == "r1: 6 node(s) didn't match pod affinity rules"
    both = half.with_pod(a_pod("b", on="n5", labels={"tier": "back", **WEB}))
    assert answer(asking, both) == "r1/n4"


def test_pod_anti_affinity_excludes_the_domains_of_matching_pods():
    view = a_view(*NODES, web("w0", "n0"), web("w1", "n2"))
    assert answer(a_pod(affinity=apart(term(ZONE, **WEB))), view) == "r1/n4"
    assert answer(a_pod(affinity=apart(term(HOST, **WEB))), view) == "r1/n1"
    everywhere = a_view(*NODES, *(web(f"w{number}", f"n{number}") for number in range(6)))
    refused = answer(a_pod(affinity=apart(term(HOST, **WEB))), everywhere)
    assert refused == "r1: 6 node(s) didn't match pod anti-affinity rules"


def test_anti_affinity_of_existing_pods_excludes_new_pods_until_they_are_deleted():
    guard = a_pod("guard", on="n0", affinity=apart(term(ZONE, **WEB)))
    view = a_view(*NODES, guard)
    assert answer(a_pod(labels=WEB), view) == "r1/n2"
    assert answer(a_pod(), view) == "r1/n1"
    assert answer(a_pod(labels=WEB), view.without_pod(guard.key)) == "r1/n0"
    alone = a_view(*NODES[:2], guard)
    assert answer(a_pod(labels=WEB), alone) == "r1: 2 node(s) didn't satisfy existing pods anti-affinity rules"


def test_reservations_are_neighbours_too():
    request = pod_request.of_pod(a_pod(labels=WEB, affinity=apart(term(HOST, **WEB))))
    view = a_view(a_node("n1"), a_node("n2"))
    taken = view.reserving(a_pod("first").key, request, node="n1", until=9)
    assert evaluation.evaluate(request, taken).node == "n2"
    assert evaluation.evaluate(request, taken.at(9)).node == "n1"


@pytest.mark.parametrize(("lying", "expected"), [("n0", "r1/n2"), ("n0 n2", "r1/n4"), ("n0 n2 n4", "r1/n1")])
def test_pods_are_spread_over_zones(lying, expected):
    there = [web(f"w{node}", node) for node in lying.split()]
    assert answer(a_pod(labels=WEB, topologySpreadConstraints=spread(ZONE)), a_view(*NODES, *there)) == expected


def test_pods_are_spread_over_nodes_as_far_as_the_skew_allows():
    there = [web("w0", "n0"), web("w1", "n0")]
    small = a_view(a_node("n0", cpu="16"), a_node("n1", cpu="1"), *there, a_pod("p", on="n1"))
    asking = a_pod(labels=WEB, topologySpreadConstraints=spread(HOST, 2))
    assert answer(asking, small) == f"r1: 1 {SPREAD} (maxSkew 2 over {HOST})"
    assert answer(a_pod(labels=WEB, topologySpreadConstraints=spread(HOST, 3)), small) == "r1/n0"


def test_nodes_outside_of_the_pods_own_affinity_are_no_domains():
    there = [web("w0", "n0"), web("w1", "n1")]
    only_n0 = {"nodeSelector": {ZONE: "a"}, "labels": WEB}
    view = a_view(*NODES, *there)
    assert answer(a_pod(**only_n0, topologySpreadConstraints=spread(ZONE)), view) == "r1/n0"
    ignoring = spread(ZONE, nodeAffinityPolicy="Ignore")
    refused = answer(a_pod(**only_n0, topologySpreadConstraints=ignoring), view)
    assert refused == f"r1: 4 node(s) didn't match Pod's node affinity/selector; 2 {SPREAD} (maxSkew 1 over {ZONE})"


def test_nodes_whose_taints_the_pod_does_not_tolerate_are_no_domains_if_the_policy_is_honor():
    tainted = a_node("t", labels={ZONE: "d"}, taints=[{"key": "gpu"}])
    view = a_view(*NODES, tainted, web("w0", "n0"), web("w2", "n2"), web("w4", "n4"))
    pod = a_pod(labels=WEB, topologySpreadConstraints=spread(ZONE))
    assert SPREAD in answer(pod, view), "zone d is empty"
    honoring = a_pod(labels=WEB, topologySpreadConstraints=spread(ZONE, nodeTaintsPolicy="Honor"))
    assert answer(honoring, view) == "r1/n1"


def test_pods_that_are_being_deleted_are_not_spread():
    leaving = web("w0", "n0").with_metadata(deletion_timestamp=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
    view = a_view(*NODES, leaving, web("w2", "n2"), web("w4", "n4"))
    pod = a_pod(labels=WEB, topologySpreadConstraints=spread(ZONE))
    assert answer(pod, view) == "r1/n1"
    assert answer(pod, view.with_pod(web("w0", "n0"))) == "r1/n1", "one in each zone"
    assert SPREAD not in answer(pod, view.without_pod(leaving.key))


def test_a_spread_over_all_pods_counts_none_as_in_kube_scheduler():
    view = a_view(*NODES, web("w0", "n0"), web("w1", "n0"))
    pod = a_pod(nodeSelector={HOST: "n0"}, topologySpreadConstraints=spread(ZONE, labelSelector={}))
    assert answer(pod, view) == "r1/n0"


def test_too_few_domains_count_as_an_empty_one():
    view = a_view(*NODES[:2], web("w", "n0"))
    assert answer(a_pod(labels=WEB, topologySpreadConstraints=spread(ZONE)), view) == "r1/n1"
    wide = spread(ZONE, minDomains=2)
    assert answer(a_pod(labels=WEB, topologySpreadConstraints=wide), view) == f"r1: 2 {SPREAD} (maxSkew 1 over {ZONE})"


def test_only_pods_of_the_same_revision_count_with_match_label_keys():
    old = a_pod("w", on="n0", labels={**WEB, "rev": "1"})
    asking = {"labels": {**WEB, "rev": "2"}, "nodeSelector": {ZONE: "a"}}
    view = a_view(*NODES, old)
    by_revision = spread(ZONE, matchLabelKeys=["rev"], nodeAffinityPolicy="Ignore")
    assert answer(a_pod(**asking, topologySpreadConstraints=by_revision), view) == "r1/n1"
    all_revisions = spread(ZONE, nodeAffinityPolicy="Ignore")
    assert f"2 {SPREAD}" in answer(a_pod(**asking, topologySpreadConstraints=all_revisions), view)


def test_what_only_the_cluster_can_judge_is_left_to_it_and_named():
    blind = a_pod(affinity=apart(term(ZONE, **WEB) | {"namespaceSelector": {}}))
    fit = evaluation.evaluate(pod_request.of_pod(blind), a_view(*NODES, web("w", "n0")))
    assert fit.unchecked == ("pod anti-affinity by namespaceSelector",)


def test_namespaces_are_asked_for_by_the_names_that_they_have_there():
    pod = a_pod(affinity=near(term(HOST, **WEB), term(HOST, **WEB) | {"namespaces": ["bank"]}))
    request = pod_request.of_pod(pod, lambda namespace: f"t1-{namespace}")
    assert request.namespace == "t1-shop"
    assert [one.namespaces for one in request.pod_constraints.affinity] == [{"t1-shop"}, {"t1-bank"}]


def test_relations_of_a_wrong_form_are_refused_with_the_pods_name():
    wrong = a_pod(topologySpreadConstraints=[{"maxSkew": "many"}])
    with pytest.raises(pod_affinity_terms.PodConstraintError, match="pod shop/new: .*maxSkew"):
        pod_affinity_terms.of_pod(wrong)
