"""Patches: exactly what differs, and nothing of what belongs to others."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hansa.kube.objects import Object
from hansa.model import diff, keys, stamp
from worlds import merged

VALUES = st.recursive(
    st.none() | st.booleans() | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)
TREES = st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3)
TABLES = st.dictionaries(st.sampled_from("pqrs"), st.sampled_from("12"), max_size=3)


def without_nulls(value: Any) -> Any:
    """What a server keeps of a value; in lists it keeps all."""
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}


def thing(labels: dict[str, str], annotations: dict[str, str]) -> Object:
    return Object.of({"metadata": {"name": "n", "namespace": "s", "labels": labels, "annotations": annotations}})


@given(TREES, TREES)
def test_a_patch_makes_one_value_the_other(have: dict[str, Any], want: dict[str, Any]) -> None:
    after = merged(have, diff.merge_patch(have, want))
    assert without_nulls(after) == without_nulls(want)
    assert diff.merge_patch(after, want) == {}


@given(TREES)
def test_a_patch_of_what_is_the_same_is_empty(value: dict[str, Any]) -> None:
    assert diff.merge_patch(value, value) == {}
    assert diff.merge_patch(without_nulls(value), value) == {}


@given(TABLES, TABLES, TABLES, TABLES, TABLES, TABLES)
def test_labels_of_others_stay_and_ours_follow(
    labels: dict[str, str],
    annotations: dict[str, str],
    other_labels: dict[str, str],
    other_annotations: dict[str, str],
    next_labels: dict[str, str],
    next_annotations: dict[str, str],
) -> None:
    origin = stamp.Origin("id", "u1", "s", "n")
    copied = stamp.put(thing(labels, annotations), origin)
    have = copied.with_metadata(
        labels={**other_labels, **copied.labels}, annotations={**other_annotations, **copied.annotations}
    )
    want = stamp.put(thing(next_labels, next_annotations), origin)
    after = Object.of(merged(have.to_dict(), diff.metadata_patch(have, want)))
    assert after.labels == {k: v for k, v in other_labels.items() if k not in labels} | dict(want.labels)
    assert after.annotations == (
        {k: v for k, v in other_annotations.items() if k not in annotations} | dict(want.annotations)
    )
    assert diff.metadata_patch(after, want) == {}


def test_a_lost_record_of_what_was_carried_is_written_again() -> None:
    want = stamp.put(thing({"p": "1"}, {}), stamp.Origin("id", "u1", "s", "n"))
    have = want.with_metadata(annotations={k: v for k, v in want.annotations.items() if k != keys.CARRIED})
    assert diff.metadata_patch(have, want) == {"metadata": {"annotations": {keys.CARRIED: "p;"}}}


def test_fields_that_are_the_same_bytes_are_not_read() -> None:
    broken = Object.parse(b'{"metadata":{"name":"n"},"data":{"a":"1"},"spec":{"never":"read"}}')
    other = broken.with_fields(data={"a": "2"}, more=[1])
    assert diff.fields_patch(broken, other, ("data", "spec", "more")) == {"data": {"a": "2"}, "more": [1]}
    assert diff.fields_patch(other, broken, ("data", "more")) == {"data": {"a": "1"}, "more": None}
