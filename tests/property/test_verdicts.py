"""Verdicts on random clusters with random histories, against a walk over all nodes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hansa.kube.language import quantity
from hansa.scheduling import counterfactual, evaluation, pod_request
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.verdict import Fit
from scheduling_things import HOST, ZONE, a_node, a_pod, a_view, apart, near, term

NAMES = st.sampled_from([f"n{number}" for number in range(5)])
APPS = st.sampled_from(("web", "db"))
CPUS = st.integers(0, 5)


@st.composite
def nodes(draw):
    labels = draw(st.sampled_from(({}, {ZONE: "a"}, {ZONE: "b"})))
    taints = draw(st.sampled_from(((), ({"key": "gpu"},))))
    return a_node(draw(NAMES), ready=draw(st.integers(0, 5)) > 0, labels=labels, taints=taints, cpu=str(draw(CPUS)))


TERMS = st.builds(lambda topology, app: term(topology, app=app), st.sampled_from((HOST, ZONE)), APPS)
RELATIONS = st.one_of(st.none(), st.builds(apart, TERMS), st.builds(near, TERMS))
SELECTED = st.sampled_from(({}, {ZONE: "a"}, {HOST: "n1"}))
TOLERATED = st.sampled_from(([], [{"key": "gpu", "operator": "Exists"}]))


@st.composite
def pods(draw, name, on):
    """A pod that asks for CPU; None as its node is a pod that waits."""
    return a_pod(
        name,
        on=on or "",
        cpu=str(draw(st.integers(0, 3))),
        labels={"app": draw(APPS)},
        phase=draw(st.sampled_from(("Running", "Running", "Failed"))),
        affinity=draw(RELATIONS) or {},
        nodeSelector=draw(SELECTED),
        tolerations=draw(TOLERATED),
    )


@st.composite
def changes(draw):
    match draw(st.integers(0, 5)):
        case 0 | 1:
            return draw(nodes())
        case 2:
            return draw(NAMES)
        case 3:
            return ("gone", f"p{draw(st.integers(0, 4))}")
        case _:
            return draw(pods(f"p{draw(st.integers(0, 4))}", draw(st.one_of(st.none(), NAMES))))


def played(history, **fields) -> tuple[ClusterView, dict, dict]:
    """The view that followed each change, and the things that are there in the end."""
    view, there_nodes, there_pods = ClusterView("r1", **fields), {}, {}
    for change in history:
        match change:
            case str(name):
                view = view.without_node(name)
                there_nodes.pop(name, None)
            case ("gone", name):
                view = view.without_pod(a_pod(name).key)
                there_pods.pop(name, None)
            case node if node.kind == "Node":
                view = view.with_node(node)
                there_nodes[node.name] = node
            case pod:
                view = view.with_pod(pod)
                there_pods[pod.name] = pod
    return view, there_nodes, there_pods


def takes(node, pod, nodes, pods) -> bool:
    """Whether a node can take a pod, by the rules and without any index."""
    bound = [one for one in pods.values() if one.spec["nodeName"] and one.status["phase"] == "Running"]
    used = [one for one in bound if one.spec["nodeName"] == node.name]
    room = quantity.parse(node.status["allocatable"]["cpu"]).nano - sum(
        pod_request.of_pod(one).amounts.get("cpu", 0) for one in used
    )
    requested = pod_request.of_pod(pod).amounts.get("cpu", 0)
    tolerated = not node.spec["taints"] or pod.spec["tolerations"]
    selected = all(node.labels.get(key) == value for key, value in pod.spec["nodeSelector"].items())
    ready = node.status["conditions"][0]["status"] == "True"
    fits = requested <= room or requested == 0
    return bool(ready and tolerated and selected and fits) and are_friends(node, pod, nodes, bound)


def are_friends(node, pod, nodes, bound) -> bool:
    def shares(topology, other):
        value = node.labels.get(topology)
        home = nodes.get(other.spec["nodeName"])
        return value is not None and home is not None and home.labels.get(topology) == value

    def has_domain(topology, other):
        home = nodes.get(other.spec["nodeName"])
        return home is not None and topology in home.labels

    def meant(one, other):
        return other.labels["app"] == one["labelSelector"]["matchLabels"]["app"]

    def demands(one, kind):
        return one.spec["affinity"].get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])

    def is_near(one):
        wanted = [other for other in bound if meant(one, other)]
        is_first = (
            not any(has_domain(one["topologyKey"], other) for other in wanted)
            and meant(one, pod)
            and one["topologyKey"] in node.labels
        )
        return is_first or any(shares(one["topologyKey"], other) for other in wanted)

    kept_off = (
        (meant(one, other) and shares(one["topologyKey"], other))
        for one in demands(pod, "podAntiAffinity")
        for other in bound
    )
    keeping_off = (
        (meant(one, pod) and shares(one["topologyKey"], other))
        for other in bound
        for one in demands(other, "podAntiAffinity")
    )
    return not any(kept_off) and not any(keeping_off) and all(map(is_near, demands(pod, "podAffinity")))


@settings(max_examples=200, deadline=None)
@given(st.lists(changes(), max_size=25), pods("new", None), st.sampled_from((2, 100)))
def test_a_verdict_is_what_a_walk_over_all_nodes_would_say(history, pod, most_groups):
    view, there_nodes, there_pods = played(history, most_groups=most_groups)
    possible = {name for name, node in there_nodes.items() if takes(node, pod, there_nodes, there_pods)}
    result = evaluation.evaluate(pod_request.of_pod(pod), view)
    if isinstance(result, Fit):
        assert result.node in possible
    else:
        assert possible == set(), str(result)


@settings(max_examples=200, deadline=None)
@given(st.lists(changes(), max_size=25), pods("new", None))
def test_what_would_make_a_pod_fit_does(history, pod):
    view, there_nodes, _ = played(history)
    request = pod_request.of_pod(pod)
    found = counterfactual.remedy(request, view)
    if found is None:
        is_ready = any(one["status"] == "True" for node in there_nodes.values() for one in node.status["conditions"])
        assert isinstance(evaluation.evaluate(request, view), Fit) or not is_ready
        return
    assert not isinstance(evaluation.evaluate(request, view), Fit)
    assert isinstance(evaluation.evaluate(found.request, view), Fit)


@settings(max_examples=100, deadline=None)
@given(st.lists(changes(), max_size=25), pods("new", None))
def test_a_view_that_followed_each_change_equals_one_built_from_the_final_state(history, pod):
    view, there_nodes, there_pods = played(history)
    fresh = a_view(*(there_nodes[name] for name in sorted(there_nodes)), *there_pods.values())
    assert {node.name: node.free for node in view.nodes()} == {node.name: node.free for node in fresh.nodes()}
    assert dict(view.pods.items()) == dict(fresh.pods.items())
    assert {shape: group.ranks for shape, group in view.groups.items()} == {
        shape: group.ranks for shape, group in fresh.groups.items()
    }
    request = pod_request.of_pod(pod)
    assert evaluation.evaluate(request, view) == evaluation.evaluate(request, fresh)
