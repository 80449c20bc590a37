"""What tenants' programs weigh, with processes that stand for them."""

import os
import signal

import pytest

from hansa.local import process
from hansa.local.process import Identity
from hansa.tenancy.process.weights import Weights


@pytest.fixture
async def programs(tmp_path):
    made = [
        process.spawn(Identity(tmp_path, str(number), "etcd"), ["sleep", "100"], log=tmp_path / "log")
        for number in range(8)
    ]
    yield made
    for one in made:
        one.signal(signal.SIGKILL)
        assert await one.ended(10)


def nice(programs):
    return [os.getpriority(os.PRIO_PROCESS, one.pid) for one in programs]


async def test_the_weight_of_all_changes_when_one_comes_or_goes(programs):
    weights = Weights()
    for number, one in enumerate(programs[:4]):
        weights.serve(str(number), [one])
    assert nice(programs) == [0] * 8
    for number, one in enumerate(programs):
        weights.serve(str(number), [one])
    assert nice(programs) == [3] * 8
    weights.leave("7")
    weights.leave("6")
    assert nice(programs) == [2] * 6 + [3] * 2
    weights.leave("never there")
    assert nice(programs) == [2] * 6 + [3] * 2


async def test_programs_that_a_former_manager_left_weigh_what_is_right_now(programs):
    for one in programs:
        assert one.be_nice(5)
    weights = Weights()
    weights.serve("0", programs[:3])
    assert nice(programs) == [0] * 3 + [5] * 5


async def test_a_program_that_was_started_again_weighs_what_others_do(programs, tmp_path):
    weights = Weights()
    for number, one in enumerate(programs):
        weights.serve(str(number), [one])
    programs[0].signal(signal.SIGKILL)
    assert await programs[0].ended(10)
    again = process.spawn(Identity(tmp_path, "0", "etcd"), ["sleep", "100"], log=tmp_path / "log")
    programs.append(again)
    assert nice([again]) == [0]
    weights.serve("0", [again])
    assert nice([again]) == [3]
