"""The last plan of a namespace as it is recorded."""

import types

from hansa.scheduling.pooling import records
from hansa.scheduling.slicing import slices
from hansa.scheduling.slicing.placements import Holding

SIZE = slices.parse('{"cpu":"100m", "memory":"100Mi"}')


def a_record(slices, **size):
    return types.SimpleNamespace(slices=slices, slice=size)


def test_a_holding_is_that_of_its_record():
    assert records.size(SIZE) == {"cpu": "100m", "memory": "100Mi"}
    record = a_record({"r1": 2, "r2": 0}, **records.size(SIZE))
    assert records.planned(record) == Holding({"r1": 2}, SIZE)


def test_no_record_and_an_invalid_one_are_no_plan():
    assert records.planned(None) is None
    assert records.planned(a_record({"r1": 1})) is None
    assert records.planned(a_record({"r1": 1}, cpu="much")) is None
