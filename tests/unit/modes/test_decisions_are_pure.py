"""Decisions of the modes in use depend on their pair alone; tests/property has random pairs of a small mode."""

import pytest

import golden_files
from golden_files import Case
from hansa.model import decision
from hansa.model.pair import Grade, Key, Pair
from hansa.model.plan import Plan


def plans(case: Case) -> list[Plan]:
    """The plans without a copy, and with a copy that is as desired; all objects are read anew."""
    source, link = case.source, case.link
    key = Key(link.upper, case.rule.resource, *source.key)
    copy = case.desired(source).with_metadata(uid="copy-uid", resource_version="7")
    pairs = [
        Pair(key, source, {link.lower: link}, {link.lower: lower}, {link.lower: Grade.CHOSEN}) for lower in (None, copy)
    ]
    return [decision.decide(pair, case.mode) for pair in pairs]


@pytest.mark.parametrize("case", golden_files.cases(), ids=str)
def test_equal_pairs_have_equal_plans(case: Case) -> None:
    first, second = plans(case), plans(case)
    assert first == second
    assert first[0].actions, "something is created or refused"
