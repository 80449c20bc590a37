"""Every golden file says what the code does. `python tests/golden_files.py` writes them anew, for a reader to judge."""

import pytest

import golden_files
from golden_files import Case
from hansa.kube import resources

CASES = golden_files.cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_golden_file_is_what_the_mode_makes(case: Case) -> None:
    for name, answer in case.answers().items():
        assert case.read(name) == answer, f"{case}/{name} says otherwise"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_file_is_left_over(case: Case) -> None:
    given = {"lower.yaml" if case.mode is golden_files.UPWARDS else "upper.yaml", "told.yaml"}
    assert {path.name for path in case.folder.iterdir()} - given == set(case.answers())


def test_every_kind_that_tensile_carries_has_a_golden_file() -> None:
    shown = {case.rule.resource for case in CASES}
    assert shown >= golden_files.TENSILE.rules.keys() | {resources.PERSISTENT_VOLUMES}
