"""When the upper pod is bound to the node of its lower one."""

from decided_pairs import HERE, LEAVING, LINKS, ROBOTS, RULES, actions, decided, line, lower, upper
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import decision, plan
from hansa.model.mode import Mode
from hansa.model.pair import Key, Pair


def _on(node: str, obj: Object) -> Object:
    return obj.with_fields(spec={"nodeName": node})


def test_a_pod_is_bound_to_its_lower_ones_node_before_its_status_is_synced_up() -> None:
    assert decided(upper(), {"a": _on("n1", lower())}, of=ROBOTS) == ["bind u1 to n1"]
    assert decided(_on("n1", upper()), {"a": _on("n1", lower())}, of=ROBOTS) == ["patch u1/status in up"]
    assert decided(upper(), {"a": lower()}, of=ROBOTS) == ["patch u1/status in up"]


def test_a_pod_is_bound_to_the_upper_node_that_stands_for_its_lower_ones() -> None:
    renamed = Mode(name="test", rules=RULES, upper_node=lambda node, link: f"{node}1" if link.lower == "a" else "")
    pair = Pair(Key("up", ROBOTS, "shop", "web"), upper(), LINKS, {"a": _on("n", lower())}, HERE)
    assert [line(action) for action in decision.decide(pair, renamed).actions] == ["bind u1 to n1"]


def test_a_binding_waits_for_its_node_and_a_pod_being_deleted_is_not_bound() -> None:
    node = Key("up", resources.NODES, "", "n2")
    wait = plan.Wait("node n2 is not in up yet", until=node)
    assert actions(upper(), {"a": _on("n2", lower())}, of=ROBOTS) == (wait,)
    leaving = upper(**LEAVING, deletionGracePeriodSeconds=9)
    assert decided(leaving, {"a": _on("n1", lower())}, of=ROBOTS) == [
        "delete l1 in a, grace 9",
        "patch u1/status in up",
    ]
