"""Objects: what is read is written again, nothing can be changed in place, and reading costs little."""

import gc
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube import decoding
from hansa.kube.errors import Invalid, Status
from hansa.kube.objects import Malformed, NamespacedName, Object, OwnerReference

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "6ad9",
        "resourceVersion": "41",
        "generation": 3,
        "creationTimestamp": "2026-11-15T10:30:12Z",
        "deletionTimestamp": "2026-11-15T10:31:12Z",
        "deletionGracePeriodSeconds": 0,
        "labels": {"app": "web"},
        "annotations": {"note": "ä"},
        "finalizers": ["a/b"],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
        ],
    },
    "spec": {"containers": [{"name": "main", "image": "i"}]},
    "status": {"phase": "Running"},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OUTLINE = 4096  # bytes, with what msgspec caches meanwhile
UNKNOWN = st.text(min_size=1).map(lambda text: f"x{text}")


def test_typed_metadata_is_read() -> None:
    pod = Object.of(POD)
    assert (pod.api_version, pod.kind, pod.name, pod.namespace, pod.uid) == ("v1", "Pod", "web-0", "shop", "6ad9")
    assert (pod.key, str(pod.key), pod.version, pod.is_deleting) == (
        NamespacedName("shop", "web-0"),
        "shop/web-0",
        "41",
        True,
    )
    assert pod.metadata.deletion_grace_period_seconds == 0
    assert pod.metadata.owner_references == (
        OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="1", controller=True),
    )


def test_other_fields_are_decoded_when_asked() -> None:
    class Status(msgspec.Struct):
        phase: str = "Unknown"

    pod = Object.of(POD)
    assert pod.spec == POD["spec"]
    assert pod.decode("status", Status).phase == "Running"
    assert pod.decode("absent", Status).phase == "Unknown"
    assert (pod.get("data"), pod.get("data", 1), pod.raw("data")) == (None, 1, b"")
    assert pod.raw("status") == b'{"phase":"Running"}'


@given(
    st.dictionaries(UNKNOWN, JSON, max_size=4),
    st.dictionaries(UNKNOWN, JSON, max_size=4),
    st.dictionaries(UNKNOWN, JSON, max_size=2),
)
def test_unknown_fields_survive_a_round_trip_wherever_they_are(top: Any, meta: Any, reference: Any) -> None:
    owner = POD["metadata"]["ownerReferences"][0] | reference
    plain = POD | top | {"metadata": POD["metadata"] | meta | {"ownerReferences": [owner]}}
    assert Object.of(plain).to_dict() == plain
    assert Object.parse(Object.of(plain).to_json()).to_dict() == plain


@given(st.dictionaries(st.sampled_from(["spec", "status", "data", "type", "rules", "zeta"]), JSON, max_size=4))
def test_an_answer_a_list_and_a_watch_read_the_same(content: dict[str, Any]) -> None:
    bare = {"metadata": POD["metadata"] | {"managedFields": [{}]}, **content}
    whole = bare | {"apiVersion": "v1", "kind": "Pod"}
    listed = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "50"}, "items": [bare]}
    page = decoding.parse_page(json.dumps(listed).encode())
    kind, watched = decoding.parse_event(json.dumps({"type": "ADDED", "object": whole}).encode())
    answered = decoding.parse_object(json.dumps(whole).encode())
    assert (kind, page.version, page.next) == ("ADDED", "50", "")
    expected = {"apiVersion": "v1", "kind": "Pod", "metadata": POD["metadata"], **content}
    assert [obj.to_dict() for obj in (*page.items, watched, answered) if isinstance(obj, Object)] == [expected] * 3


def test_a_list_of_nothing_is_empty() -> None:
    for items in ("[]", "null"):
        assert decoding.parse_page(f'{{"kind":"PodList","items":{items}}}'.encode()).items == ()


def test_a_watch_s_error_is_a_status() -> None:
    gone = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "code": 410,
        "reason": "Expired",
        "message": "too old",
    }
    kind, status = decoding.parse_event(json.dumps({"type": "ERROR", "object": gone}).encode())
    assert (kind, status) == ("ERROR", Status(code=410, reason="Expired", message="too old"))


def test_managed_fields_are_dropped_unless_asked_for() -> None:
    text = json.dumps(POD | {"metadata": POD["metadata"] | {"managedFields": [{"manager": "m"}]}})
    assert Object.parse(text).to_dict() == POD
    kept = Object.parse(text, keep_managed_fields=True)
    assert kept.to_dict()["metadata"]["managedFields"] == [{"manager": "m"}]


def test_nulls_in_metadata_count_as_absent() -> None:
    plain = {"metadata": {"name": "a", "creationTimestamp": None, "labels": None, "ownerReferences": None}}
    assert Object.of(plain).to_dict() == {"metadata": {"name": "a"}}


def test_an_object_cannot_be_changed_in_place() -> None:
    pod = Object.of(POD)
    pod.spec["containers"].clear()
    pod.to_dict()["metadata"].clear()
    for change in (
        lambda: setattr(pod, "kind", "Node"),
        lambda: setattr(pod.metadata, "name", "b"),
        lambda: pod.labels.update(a="b"),  # type: ignore[attr-defined]
        lambda: pod.annotations.pop("note"),  # type: ignore[attr-defined]
        lambda: pod.metadata.finalizers.append("c"),  # type: ignore[attr-defined]
    ):
        with pytest.raises((AttributeError, TypeError)):
            change()
    assert pod.to_dict() == POD


def test_a_changed_object_is_a_new_one() -> None:
    pod = Object.of(POD)
    new = pod.with_fields(spec={"nodeName": "n"}, status=None).with_metadata(
        labels={"b": "c"}, annotations={}, finalizers=[], owner_references=[], resource_version=""
    )
    assert new.to_dict() == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            key: value
            for key, value in (POD["metadata"] | {"labels": {"b": "c"}}).items()
            if key not in ("annotations", "finalizers", "ownerReferences", "resourceVersion")
        },
        "spec": {"nodeName": "n"},
    }
    assert pod.to_dict() == POD


def test_the_garbage_collector_does_not_track_objects() -> None:
    pod = Object.parse(json.dumps(POD | {"more": {"a": 1}}).encode())
    assert not any(gc.is_tracked(part) for part in (pod, pod.metadata, pod._spec, pod._others, pod.metadata._labels))


def test_what_labels_and_annotations_say_of_many_objects_is_once_in_memory() -> None:
    one, other = (Object.parse(json.dumps(POD).encode()) for _ in range(2))
    for these, those in ((one.labels, other.labels), (one.annotations, other.annotations)):
        assert these
        assert all(these[name] is those[name] for name in these)


def test_an_object_does_not_keep_the_whole_answer_alive() -> None:
    pod = Object.parse(json.dumps(POD | {"padding": "x" * 100_000}).encode()).with_fields(padding=None)
    assert {type(raw) for raw in pod._content.values()} == {bytes}, "a Raw may be a view"
    assert sum(map(len, pod._content.values())) < 200


def test_a_repr_does_not_show_content() -> None:
    text = json.dumps(
        {"kind": "Secret", "metadata": {"name": "a", "annotations": {"last": "hush"}}, "data": {"k": "hush"}}
    )
    secret = Object.parse(text)
    assert "hush" not in repr(secret) + repr(secret.metadata)
    assert repr(secret) == "Secret(a @)"


@pytest.mark.parametrize(
    "plain", [{"metadata": {"labels": 5}}, {"metadata": []}, {"kind": 5}, {"metadata": {"name": {1}}}]
)
def test_what_is_no_object_is_refused_with_a_sentence(plain: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"not a Kubernetes object"):
        Object.of(plain)


@pytest.mark.parametrize("spec", [5, "text", [1], {"nodeName": 5}])
def test_a_field_of_another_type_is_malformed_and_names_the_object(spec):
    class Bound(msgspec.Struct, rename="camel"):
        node_name: str = ""

    pod = Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "a", "name": "b"}, "spec": spec})
    with pytest.raises(Malformed, match="spec of Pod a/b is malformed"):
        pod.decode("spec", Bound)


def test_a_spec_that_is_no_table_is_malformed_and_null_is_empty():
    assert Object.of({"kind": "Pod", "metadata": {}, "spec": None, "status": None}).spec == {}
    with pytest.raises(Malformed):
        _ = Object.of({"kind": "Pod", "metadata": {}, "spec": [1]}).spec


def cost_of(make: Callable[[], Object], number: int = 10) -> float:
    """The bytes that one of these objects takes in memory."""
    tracemalloc.start()
    try:
        made = [make() for _ in range(number)]
        return tracemalloc.get_traced_memory()[0] / len(made)
    finally:
        tracemalloc.stop()


LARGE_METADATA: list[dict[str, Any]] = [
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": f"p{n}", "uid": f"{n}"} for n in range(500)]},
    {"ownerReferences": [{"name": f"p{n}", "uid": f"{n}", "later": "x" * 100} for n in range(500)]},
    {"finalizers": [f"example.com/f{n}" for n in range(500)]},
    {"labels": {f"l{n}": "" for n in range(500)}},
    {"annotations": {f"a{n}": "x" * 600 for n in range(200)}},
    {"generateName": "g" * 100_000},
    {"selfLink": "s" * 100_000},
]


@pytest.mark.parametrize("large", LARGE_METADATA, ids=lambda one: next(iter(one)))
def test_metadata_counts_as_memory_and_an_outline_does_not_keep_it(large: dict[str, Any]) -> None:
    text = json.dumps({"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b", "uid": "c"} | large})
    assert Object.parse(text).memory > cost_of(lambda: Object.parse(text)) / 2
    assert cost_of(lambda: Object.parse(text).outlined()) < OUTLINE


def test_an_outline_keeps_the_name_the_version_and_the_size() -> None:
    pod = Object.of(POD)
    outline = pod.outlined()
    assert (outline.key, outline.uid, outline.version, outline.size) == (pod.key, pod.uid, pod.version, pod.size)
    assert outline.is_deleting
    assert not outline.is_whole
    assert not outline.metadata.finalizers
    assert not outline.metadata.owner_references
