"""Updates of a lower pod: changes of the upper one, nothing that the API server forbids, nothing twice."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansa.kube.objects import Object
from translating import a_pod, created, follow, patched

SIZES = st.sampled_from(["100m", "1", "2"])
RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        "requests": st.fixed_dictionaries({}, optional={"cpu": SIZES, "memory": SIZES}),
        "limits": st.fixed_dictionaries({}, optional={"cpu": SIZES, "memory": SIZES}),
    },
)
TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {"key": st.sampled_from(["a", "b"]), "operator": st.just("Exists"), "effect": st.just("NoExecute")},
        optional={"tolerationSeconds": st.sampled_from([1, 2])},
    ),
    max_size=3,
)
MAPS = st.dictionaries(st.sampled_from(["a", "b", "virtual-pod"]), st.sampled_from(["1", "2"]))


def containers(*names: str, **more: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    images = st.sampled_from(["i:1", "i:2"])
    return st.tuples(
        *(
            st.fixed_dictionaries({"name": st.just(name), "image": images}, optional={"resources": RESOURCES})
            for name in names
        )
    ).map(lambda some: [one | more for one in some])


PODS = st.builds(
    a_pod,
    st.fixed_dictionaries(
        {"containers": containers("main", "other"), "initContainers": containers("proxy", restartPolicy="Always")},
        optional={
            "activeDeadlineSeconds": st.sampled_from([10, 20]),
            "tolerations": TOLERATIONS,
            "resources": RESOURCES,
            "ephemeralContainers": st.sampled_from([[{"name": "e1"}], [{"name": "e1"}, {"name": "e2"}]]),
        },
    ),
    labels=MAPS,
    annotations=MAPS,
)


@settings(deadline=None)
@given(PODS, PODS)
def test_one_round_is_enough_whatever_changed(before: Object, after: Object) -> None:
    lower = created(before)
    parts = follow(lower, after)
    assert follow(patched(lower, parts), after) == []
    assert len({part.subresource for part in parts}) == len(parts) <= 3


@settings(deadline=None)
@given(PODS, PODS)
def test_nothing_is_changed_that_the_server_forbids(before: Object, after: Object) -> None:
    lower = created(before)
    now = patched(lower, follow(lower, after)).spec
    was = lower.spec
    for spec in (now, was):
        for field in ("containers", "initContainers"):
            spec[field] = [{k: v for k, v in one.items() if k not in ("image", "resources")} for one in spec[field]]
        spec.pop("ephemeralContainers", None), spec.pop("resources", None)
    assert was.pop("activeDeadlineSeconds", 99) >= now.pop("activeDeadlineSeconds", 99)
    old, new = ({one["key"] for one in spec.pop("tolerations", ())} for spec in (was, now))
    assert old <= new
    assert now == was


def test_nothing_is_written_when_nothing_changed() -> None:
    upper = a_pod(labels={"a": "1"})
    assert follow(created(upper), upper) == []


def test_changes_of_lower_admission_are_not_reverted() -> None:
    upper = a_pod({"containers": [{"name": "main", "image": "main:1", "resources": {"requests": {"cpu": "1"}}}]})
    lower = created(upper)
    mirrored = {
        "name": "main",
        "image": "mirror/main:1",
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
    }
    injected = {"name": "injected", "image": "mesh:1"}
    tolerated = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]
    spec = lower.spec | {"containers": [mirrored, injected], "tolerations": tolerated}
    labels = {**lower.labels, "mesh": "yes"}
    assert follow(lower.with_fields(spec=spec).with_metadata(labels=labels), upper) == []


def test_a_new_image_is_asked_for_once_and_leaves_the_other_containers_alone() -> None:
    lower = created(a_pod())
    injected = {"name": "injected", "image": "mesh:1"}
    lower = lower.with_fields(spec=lower.spec | {"containers": [*lower.spec["containers"], injected]})
    newer = a_pod({"containers": [{"name": "main", "image": "main:2"}]})
    [part] = follow(lower, newer)
    assert [(one["name"], one["image"]) for one in part.patch["spec"]["containers"]] == [
        ("main", "main:2"),
        ("injected", "mesh:1"),
    ]
    mirrored = patched(lower, [part]).spec
    mirrored["containers"][0]["image"] = "mirror/main:2"
    assert follow(patched(lower, [part]).with_fields(spec=mirrored), newer) == []


@pytest.mark.parametrize(
    ("old", "new", "is_written"), [(None, 10, True), (20, 10, True), (10, 20, False), (10, None, False)]
)
def test_an_active_deadline_is_only_shortened(old: int | None, new: int | None, is_written: bool) -> None:
    def pod(seconds: int | None) -> Object:
        return a_pod({} if seconds is None else {"activeDeadlineSeconds": seconds})

    assert bool(follow(created(pod(old)), pod(new))) is is_written


def test_a_label_removed_from_the_upper_pod_is_removed_from_the_lower_one_and_foreign_labels_stay() -> None:
    lower = created(a_pod(labels={"a": "1"}))
    lower = lower.with_metadata(labels={**lower.labels, "foreign": "1"})
    [part] = follow(lower, a_pod())
    assert part.patch["metadata"]["labels"] == {"a": None}


def test_a_label_that_was_put_aside_never_shows() -> None:
    aside = "group.batch.scheduler.tencent.com"
    lower = created(a_pod(labels={aside: "1"}))
    assert aside not in lower.labels
    [part] = follow(lower, a_pod(labels={aside: "2"}))
    assert part.patch["metadata"] == {"annotations": {"tripped-labels": f'{{"{aside}":"2"}}'}}


def test_sizes_of_containers_that_ran_already_are_left_alone() -> None:
    def pod(cpu: str) -> Object:
        return a_pod({"initContainers": [{"name": "first", "image": "i", "resources": {"requests": {"cpu": cpu}}}]})

    assert follow(created(pod("1")), pod("2")) == []


def test_annotations_about_the_lower_pod_are_not_synced_down() -> None:
    assert follow(created(a_pod()), a_pod(annotations={"hansa.dev/lower-uid": "lower-uid"})) == []


def test_a_resize_beside_a_new_image_names_the_new_image() -> None:
    def pod(image: str, cpu: str) -> Object:
        return a_pod({"containers": [{"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}}}]})

    _, resize = follow(created(pod("main:1", "1")), pod("main:2", "2"))
    assert resize.subresource == "resize"
    [container] = resize.patch["spec"]["containers"]
    assert (container["image"], container["resources"]) == ("main:2", {"requests": {"cpu": "2"}})
