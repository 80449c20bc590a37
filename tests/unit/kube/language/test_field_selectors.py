"""Field selectors: terms on paths of an object, with escapes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube.language import field_selectors
from hansa.kube.language.field_selectors import FieldSelector, FieldTerm, parse
from hansa.kube.language.selectors import SelectorError

POD: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"nodeName": "n1", "hostNetwork": True, "priority": 7, "containers": []},
    "status": {"phase": "Running", "podIP": None},
}
paths = st.sampled_from(["type", "metadata.name", "status.phase", "spec.nodeName"])
terms = st.builds(FieldTerm, paths, st.text(max_size=8) | st.text(alphabet="\\,=a", max_size=8), st.booleans())


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", True),
        ("metadata.name=web", True),
        ("metadata.name==web", True),
        ("metadata.name!=web", False),
        ("metadata.name=web,status.phase!=Running", False),
        ("metadata.name=web,,status.phase=Running,", True),
        ("spec.nodeName=", False),
        ("spec.nodeName!=", True),
        ("status.nominatedNodeName=", True),
        ("status.podIP=", True),
        ("spec.hostNetwork=true", True),
        ("spec.unschedulable=false", True),
        ("spec.unschedulable=", False),
        ("spec.priority=7", True),
        ("spec.nodeName.deeper=", True),
    ],
)
def test_a_field_selector_matches_an_object_when_every_term_holds(selector: str, expected: bool) -> None:
    assert parse(selector).matches_object(POD) is expected


def test_escapes_in_a_value_stand_for_the_character() -> None:
    selector = parse(r"reason=a\,b\=c\\d,type!=x")
    assert selector == FieldSelector((FieldTerm("reason", "a,b=c\\d"), FieldTerm("type", "x", negated=True)))
    assert str(selector) == r"reason=a\,b\=c\\d,type!=x"


@pytest.mark.parametrize(
    "selector", ["name", "=x", "!=x", "a=b=c", "a===b", r"a=\x", "a=b\\", "a b=c", r"a\,b=c", "a,b=c"]
)
def test_a_broken_field_selector_is_refused_with_a_sentence_that_names_it(selector: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(selector)
    assert f'field selector "{selector}" cannot be read' in str(caught.value)


@given(st.lists(terms, max_size=4))
def test_a_printed_field_selector_reads_back_to_the_same(some: list[FieldTerm]) -> None:
    selector = parse(",".join(map(str, some)))
    assert sorted(map(str, selector.terms)) == sorted(map(str, some))
    assert parse(str(selector)) == selector


@given(terms, st.dictionaries(paths, st.text(max_size=3)))
def test_a_term_and_its_negation_divide_all_objects(term: FieldTerm, fields: dict[str, str]) -> None:
    negation = FieldTerm(term.field, term.value, negated=not term.negated)
    assert term.matches(fields) is not negation.matches(fields)
    assert term.matches({term.field: term.value}) is not term.negated


def test_the_value_of_a_field_is_its_text() -> None:
    assert field_selectors.field_of(POD, "status.phase") == "Running"
    assert field_selectors.field_of(POD, "spec.hostNetwork") == "true"
    assert field_selectors.field_of({}, "spec.hostNetwork") == "false"
    assert field_selectors.field_of({"spec": None}, "spec.nodeName") == ""
