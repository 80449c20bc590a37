"""Label selectors: what they match, what they refuse and how they are printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube.language import selectors
from hansa.kube.language.selectors import EVERYTHING, NOTHING, Operator, Requirement, SelectorError, parse
from hansa.runtime.errors import HansaError

names = st.text("aZ09", min_size=1, max_size=3) | st.sampled_from(["in", "notin", "a-b", "A_0.b", "7", "x" * 63])
keys = names | st.builds("{}/{}".format, st.sampled_from(["a", "a-b.example.com", "0.x"]), names)
values = st.just("") | names
labels = st.dictionaries(keys, values, max_size=4)
conditions = st.one_of(
    st.tuples(st.sampled_from([Operator.EQUALS, Operator.NOT_EQUALS]), st.tuples(values)),
    st.tuples(st.sampled_from([Operator.IN, Operator.NOT_IN]), st.lists(values, min_size=1, max_size=3)),
    st.tuples(st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST]), st.just(())),
    st.tuples(st.sampled_from([Operator.GT, Operator.LT]), st.tuples(st.sampled_from(["0", "7", "10", "99"]))),
)
requirements = st.builds(lambda key, condition: selectors.requirement(key, *condition), keys, conditions)
some_requirements = st.lists(requirements, max_size=5)


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a=b", {}, False),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
        ("a!=b", {"a": "c"}, True),
        ("a!=b", {"a": "b"}, False),
        ("a!=b", {}, True),
        ("a!=", {"a": ""}, False),
        ("a in (b,c)", {"a": "c"}, True),
        ("a in (b,c)", {}, False),
        ("a in ()", {"a": ""}, True),
        ("a in (b,)", {"a": ""}, True),
        ("a notin (b,c)", {"a": "b"}, False),
        ("a notin (b,c)", {"a": "d"}, True),
        ("a notin (b,c)", {}, True),
        ("a", {"a": ""}, True),
        ("a", {"b": ""}, False),
        ("!a", {}, True),
        ("!a", {"a": "x"}, False),
        ("a>5", {"a": "6"}, True),
        ("a>5", {"a": "5"}, False),
        ("a<5", {"a": "4"}, True),
        ("a<5", {"a": "x"}, False),
        ("a<5", {}, False),
        ("a>5", {"a": "9223372036854775807"}, True),
        ("a>5", {"a": "9223372036854775808"}, False),
        ("a>5", {"a": "007"}, True),
        ("a=b,c=d", {"a": "b"}, False),
        ("a=b,c=d", {"a": "b", "c": "d"}, True),
        ("in in (in,notin)", {"in": "notin"}, True),
        ("notin=in", {"notin": "in"}, True),
        ("", {"a": "b"}, True),
        (" a = b , c ", {"a": "b", "c": ""}, True),
    ],
)
def test_a_selector_matches_when_every_condition_holds(selector: str, labels: dict[str, str], expected: bool) -> None:
    assert parse(selector).matches(labels) is expected


@pytest.mark.parametrize(
    ("selector", "canonical"),
    [
        ("z=1,a==2", "a=2,z=1"),
        (" x  in(c, a,b ,a) ", "x in (a,b,c)"),
        ("x in ()", "x in ()"),
        ("x in (,a)", "x in (,a)"),
        ("x notin (a)", "x notin (a)"),
        ("! x , y", "!x,y"),
        ("x > 1,y<2", "x>1,y<2"),
        ("x!=", "x!="),
        ("  ", ""),
    ],
)
def test_a_selector_is_printed_sorted_and_without_needless_space(selector: str, canonical: str) -> None:
    assert str(parse(selector)) == canonical


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ("a,", "a label key"),
        (",a", "a label key"),
        ("a b", '"b"'),
        ("a in b", '"("'),
        ("a in (b", '")"'),
        ("a in (b c)", '"c"'),
        ("a in", '"("'),
        ("a in (", "a value"),
        ("!a=b", '"="'),
        ("!", "a label key"),
        ("a=b=c", '"="'),
        ("a===b", '"="'),
        ("a=(b)", '"("'),
        ("a>x", "whole number"),
        ("a>", "whole number"),
        ("a>9223372036854775808", "whole number"),
        ("a>-1", '"-1"'),
        ("-a", '"-a"'),
        ("a/b/c", '"a/b/c"'),
        ("/a", '"/a"'),
        ("A.com/a", '"A.com/a"'),
        ("a=b-", '"b-"'),
        ("a=" + "b" * 64, "63"),
        ("b" * 64, "63"),
        ("x" * 254 + "/a", "DNS"),
        ("a=é", '"é"'),
    ],
)
def test_an_invalid_selector_is_refused_with_its_text_and_the_reason(selector: str, why: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(selector)
    assert isinstance(caught.value, HansaError)
    assert isinstance(caught.value, ValueError)
    assert f'label selector "{selector}" cannot be read' in str(caught.value)
    assert why in str(caught.value).split("cannot be read: ")[1]


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert selectors.of_object(None) is NOTHING
    assert selectors.of_object({}) == EVERYTHING
    assert selectors.of_object({"matchLabels": None, "matchExpressions": []}) == EVERYTHING
    assert EVERYTHING.matches({})
    assert str(EVERYTHING) == ""


@given(labels)
def test_nothing_matches_no_labels_and_can_be_sent_to_a_server(some: dict[str, str]) -> None:
    assert not NOTHING.matches(some)
    assert parse(str(NOTHING)) == NOTHING


def test_an_object_selector_joins_labels_and_expressions() -> None:
    selector = selectors.of_object(
        {
            "matchLabels": {"tier": "web", "app": "shop"},
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["b", "a"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "env", "operator": "NotIn", "values": ["test"]},
                {"key": "owner", "operator": "Exists", "values": None},
            ],
        }
    )
    assert str(selector) == "app=shop,env notin (test),!old,owner,tier=web,zone in (a,b)"
    assert selector.matches({"app": "shop", "tier": "web", "zone": "a", "owner": ""})
    assert not selector.matches({"app": "shop", "tier": "web", "zone": "a"})


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ({"matchLabels": {"-": "x"}}, '"-" is not a valid label key'),
        ({"matchLabels": {"a": "x y"}}, '"x y" is not a valid value of label "a"'),
        ({"matchLabels": {"a": 1}}, r"matchLabels\[...\]"),
        ({"matchLabels": ["a"]}, "matchLabels"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "In on label .a. needs a value"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}, "takes no values"),
        ({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}, "use In, NotIn, Exists"),
        ({"matchExpressions": [{"key": "a", "operator": "Equals", "values": ["1"]}]}, "use In, NotIn, Exists"),
        ({"matchExpressions": [{"operator": "In"}]}, "key"),
    ],
)
def test_a_broken_object_selector_is_refused_with_the_place_of_the_mistake(
    selector: dict[str, object], why: str
) -> None:
    with pytest.raises(SelectorError, match=why):
        selectors.of_object(selector)


def test_plain_labels_are_a_selector_and_are_not_checked() -> None:
    assert str(selectors.of_labels({"b": "2", "a": "1"})) == "a=1,b=2"
    assert selectors.of_labels({"not a key": "x"}).matches({"not a key": "x"})
    assert selectors.of_labels({}) == EVERYTHING


@given(some_requirements)
def test_a_printed_selector_reads_back_to_the_same(conjunction: list[Requirement]) -> None:
    text = ",".join(map(str, conjunction))
    selector = parse(text)
    assert sorted(map(str, selector.requirements)) == sorted(map(str, conjunction))
    assert parse(str(selector)) == selector


@given(some_requirements, labels)
def test_a_selector_is_the_conjunction_of_its_conditions(conjunction: list[Requirement], some: dict[str, str]) -> None:
    selector = parse(",".join(map(str, conjunction)))
    assert selector.matches(some) == all(requirement.matches(some) for requirement in conjunction)


@given(labels, keys, st.lists(values, min_size=1))
def test_each_condition_and_its_opposite_divide_all_labels(some: dict[str, str], key: str, among: list[str]) -> None:
    for one, opposite, taken in (
        (Operator.EXISTS, Operator.DOES_NOT_EXIST, []),
        (Operator.IN, Operator.NOT_IN, among),
        (Operator.EQUALS, Operator.NOT_EQUALS, among[:1]),
    ):
        holds = selectors.requirement(key, one, taken).matches(some)
        assert selectors.requirement(key, opposite, taken).matches(some) is not holds


@given(st.text(alphabet="ab=!(),<> \tin-/.0", max_size=20) | st.text(max_size=20))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    try:
        selector = parse(text)
    except SelectorError:
        return
    assert parse(str(selector)) == selector
