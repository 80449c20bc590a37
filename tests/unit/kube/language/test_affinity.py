"""Node affinity: which nodes a pod may run on, and which it prefers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube.language import affinity
from hansa.kube.language.affinity import AffinityError

LABELS = {"zone": "a", "cores": "16", "empty": "", "huge": "9" * 20}

expressions = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["zone", "cores", "other", "not a key"]),
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"]),
        "values": st.lists(st.sampled_from(["a", "16", "20", "not a value"]), max_size=2),
    }
)
terms = st.fixed_dictionaries({}, optional={"matchExpressions": st.lists(expressions, max_size=2)})


def condition(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def requiring(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def preferring(*weighted: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    preferred = [{"weight": weight, "preference": term} for weight, term in weighted]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def is_met(term: dict[str, Any]) -> bool:
    return affinity.of_pod_spec(requiring(term)).matches("n1", LABELS)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (condition("zone", "In", "a", "b"), True),
        (condition("zone", "In", "b"), False),
        (condition("other", "In", "a"), False),
        (condition("empty", "In", ""), True),
        (condition("zone", "NotIn", "b"), True),
        (condition("zone", "NotIn", "a"), False),
        (condition("other", "NotIn", "a"), True),
        (condition("zone", "Exists"), True),
        (condition("other", "Exists"), False),
        (condition("zone", "DoesNotExist"), False),
        (condition("other", "DoesNotExist"), True),
        (condition("cores", "Gt", "8"), True),
        (condition("cores", "Gt", "16"), False),
        (condition("cores", "Lt", "17"), True),
        (condition("zone", "Gt", "8"), False),
        (condition("other", "Lt", "8"), False),
        (condition("huge", "Gt", "8"), False),
    ],
)
def test_a_condition_on_labels_is_met_as_by_the_scheduler(one: dict[str, Any], expected: bool) -> None:
    assert is_met({"matchExpressions": [one]}) is expected


@pytest.mark.parametrize(
    "bad",
    [
        condition("zone", "Near", "a"),
        condition("zone", "Equals", "a"),
        condition("zone", ""),
        condition("zone", "In"),
        condition("zone", "In", "a", "not a value"),
        condition("zone", "Exists", "a"),
        condition("cores", "Gt", "eight"),
        condition("cores", "Gt", "-1"),
        condition("cores", "Gt", "8", "8"),
        condition("cores", "Lt"),
        condition("not a key", "DoesNotExist"),
    ],
)
def test_a_bad_condition_spoils_its_own_term_only(bad: dict[str, Any]) -> None:
    good = condition("zone", "Exists")
    assert not is_met({"matchExpressions": [bad]})
    assert not is_met({"matchExpressions": [good, bad]})
    assert affinity.of_pod_spec(requiring({"matchExpressions": [bad]}, {"matchExpressions": [good]})).matches(
        "n1", LABELS
    )
    assert affinity.of_pod_spec(preferring((5, {"matchExpressions": [bad]}))).score("n1", LABELS) == 0


@pytest.mark.parametrize("empty", [{}, {"matchExpressions": []}, {"matchExpressions": None, "matchFields": []}])
def test_an_empty_term_matches_no_node(empty: dict[str, Any]) -> None:
    assert not is_met(empty)
    assert affinity.of_pod_spec(preferring((5, empty))).score("n1", LABELS) == 0


def test_required_affinity_without_terms_matches_no_node_but_no_affinity_matches_all() -> None:
    assert not affinity.of_pod_spec(requiring()).matches("n1", LABELS)
    nowhere: list[dict[str, Any]] = [{}, {"affinity": None}, {"affinity": {}}, {"affinity": {"nodeAffinity": {}}}]
    for spec in [*nowhere, {"nodeSelector": {}}]:
        assert affinity.of_pod_spec(spec).matches("n1", {})


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (condition("metadata.name", "In", "n1"), True),
        (condition("metadata.name", "In", "n2"), False),
        (condition("metadata.name", "NotIn", "n2"), True),
        (condition("metadata.name", "NotIn", "n1"), False),
        (condition("metadata.name", "In", "n1", "n2"), False),
        (condition("metadata.name", "In"), False),
        (condition("metadata.name", "Exists"), False),
        (condition("metadata.uid", "In", "n1"), False),
    ],
)
def test_a_field_condition_compares_the_nodes_name_with_one_value(field: dict[str, Any], expected: bool) -> None:
    assert is_met({"matchFields": [field]}) is expected
    assert is_met({"matchFields": [field], "matchExpressions": [condition("zone", "Exists")]}) is expected
    assert not is_met({"matchFields": [field], "matchExpressions": [condition("zone", "DoesNotExist")]})


def test_node_selector_and_required_affinity_must_both_hold() -> None:
    spec = requiring({"matchExpressions": [condition("cores", "Gt", "8")]}) | {"nodeSelector": {"zone": "a"}}
    assert affinity.of_pod_spec(spec).matches("n1", LABELS)
    assert not affinity.of_pod_spec(spec).matches("n1", LABELS | {"zone": "b"})
    assert not affinity.of_pod_spec(spec).matches("n1", LABELS | {"cores": "4"})


def test_the_score_is_the_sum_of_the_weights_of_the_preferences_met() -> None:
    spec = preferring(
        (10, {"matchExpressions": [condition("zone", "In", "a")]}),
        (5, {"matchExpressions": [condition("zone", "In", "b")]}),
        (2, {"matchFields": [condition("metadata.name", "In", "n1")]}),
        (0, {"matchExpressions": [condition("zone", "Exists")]}),
    )
    assert affinity.of_pod_spec(spec).score("n1", LABELS) == 12
    assert affinity.of_pod_spec(spec).score("n2", LABELS) == 10
    assert affinity.of_pod_spec(spec).matches("n3", {})
    assert affinity.of_pod_spec({}).score("n1", LABELS) == 0


@given(st.lists(terms, max_size=3), st.lists(terms, max_size=3))
def test_terms_are_alternatives(some: list[dict[str, Any]], more: list[dict[str, Any]]) -> None:
    def selects(terms: list[dict[str, Any]]) -> bool:
        return affinity.of_node_selector({"nodeSelectorTerms": terms}).matches("n1", LABELS)

    assert selects(some + more) is (selects(some) or selects(more))


@given(st.lists(expressions, min_size=1, max_size=2), st.lists(expressions, min_size=1, max_size=2))
def test_conditions_of_a_term_must_all_hold(some: list[dict[str, Any]], more: list[dict[str, Any]]) -> None:
    both = is_met({"matchExpressions": some + more})
    assert both is (is_met({"matchExpressions": some}) and is_met({"matchExpressions": more}))


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"nodeSelector": {"a": 1}}, "nodeSelector"),
        ({"affinity": "x"}, "affinity"),
        (requiring({"matchExpressions": [{"key": "a"}]}), "operator"),
        (requiring({"matchExpressions": "x"}), "matchExpressions"),
        ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}}, "weight"),
    ],
)
def test_constraints_of_another_form_are_refused_with_the_place_of_the_mistake(
    spec: dict[str, Any], where: str
) -> None:
    with pytest.raises(AffinityError, match=f"node constraints.*{where}"):
        affinity.of_pod_spec(spec)
