"""Every golden file matches the code. `python tests/support/golden_files.py` rewrites them for review."""

import pytest

import golden_files
from golden_files import Case
from hansa.kube.objects import Object

CASES = golden_files.cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_golden_file_is_what_the_mode_makes(case: Case) -> None:
    for name, answer in case.answers().items():
        assert case.read(name) == answer, f"{case}/{name} says otherwise"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_file_is_left_over(case: Case) -> None:
    given = {case.given, "told.yaml", "around.yaml"}
    assert {path.name for path in case.folder.iterdir()} - given == set(case.answers())


@pytest.mark.parametrize("folder", golden_files.WAYS)
def test_every_kind_that_a_mode_carries_has_a_golden_file(folder: str) -> None:
    shown = {case.rule.resource for case in CASES if case.folder.parent.parent.name == folder}
    assert shown == golden_files.WAYS[folder].keys()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_as_it_should_be_is_not_written_again(case: Case) -> None:
    wanted = case.desired(case.source)
    assert list(case.rule.down_patches(wanted, wanted)) == []


@pytest.mark.parametrize("case", [case for case in CASES if case.read("told.yaml")], ids=str)
def test_a_status_that_is_synced_up_needs_no_second_patch(case: Case) -> None:
    lower = Object.of(golden_files.merged(case.desired(case.source).to_dict(), case.read("told.yaml")))
    assert list(case.rule.up_patches(Object.of(case.read("back.yaml")), lower, case.link)) == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_source_object_is_never_modified(case: Case) -> None:
    source = case.source
    before = source.to_json()
    case.desired(source)
    assert source.to_json() == before
