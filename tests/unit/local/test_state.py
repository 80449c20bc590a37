"""The state folder of local clusters."""

import os
from pathlib import Path

import pytest

from hansa.local import state
from hansa.local.spec import ClusterSpec, NodeShape, Taint
from hansa.local.state import Record, State


def test_a_record_is_read_as_it_was_written(tmp_path):
    folder = State(tmp_path)
    shape = NodeShape(labels={"zone": "a"}, taints=(Taint("gpu", "NoSchedule"),))
    record = Record(ClusterSpec("a", nodes=3, shape=shape, flags={"kwok": ("--v=1",)}), slot=1, ports={"x": 1})
    folder.save(record)
    assert folder.get("a") == record
    assert folder.records() == [record]


def test_an_unknown_cluster_is_refused_with_the_known_names(tmp_path):
    folder = State(tmp_path)
    folder.save(Record(ClusterSpec("a"), slot=1, ports={}))
    with pytest.raises(state.UnknownCluster, match=r'there is no local cluster "b" \(known: a\)'):
        folder.get("b")


def test_a_broken_record_is_named(tmp_path):
    path = State(tmp_path).folder("a") / "cluster.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    with pytest.raises(state.UnusableState, match=f"cannot read {path}"):
        State(tmp_path).get("a")


def test_the_folder_is_named_by_the_user_the_environment_or_the_standard():
    assert state.open_state(Path("/nowhere/named"), {"HANSA_STATE": "/nowhere/env"}).root == Path("/nowhere/named")
    assert state.open_state(None, {"HANSA_STATE": "/nowhere/env"}).root == Path("/nowhere/env")
    assert state.open_state(None, {"XDG_STATE_HOME": "/nowhere"}).root == Path("/nowhere/hansa")


def test_a_path_too_long_for_a_socket_is_refused():
    with pytest.raises(state.UnusableState, match="is too long: Unix sockets in it allow 90 characters"):
        state.open_state(Path("/nowhere") / ("x" * 90))


def test_a_folder_of_another_user_is_refused(tmp_path):
    foreign = Path("/")
    if os.getuid() == 0:
        foreign = tmp_path
        os.chown(tmp_path, 65534, 65534)
    with pytest.raises(state.UnusableState, match="belongs to .*; choose another with --state"):
        state.open_state(foreign)


def test_a_file_is_no_state_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(state.UnusableState, match="is not a folder"):
        state.open_state(tmp_path / "file")
