"""The merge patch of the record of a namespace's placements."""

from hansa.tenancy.api import PlacementRecord
from hansa.tenancy.pool import placement_records


def test_a_record_is_replaced_as_a_whole():
    before = PlacementRecord("u1", {"r1": 1, "r2": 2}, {"cpu": "1", "memory": "1Gi"})
    after = PlacementRecord("u2", {"r2": 3}, {"cpu": "2"})
    assert placement_records.replacement(before, after) == {
        "uid": "u2",
        "slices": {"r1": None, "r2": 3},
        "slice": {"cpu": "2", "memory": None},
    }
    assert placement_records.replacement(None, after) == {"uid": "u2", "slices": {"r2": 3}, "slice": {"cpu": "2"}}
    assert placement_records.replacement(before, None) is None
