"""The samples in hack/virtualcluster are those that vc-manager installs, and their links lead to the definitions."""

import pytest
import yaml

import sample_files
from hansa.tenancy import installing


@pytest.mark.parametrize("name", sorted(sample_files.texts()))
def test_a_sample_is_what_is_written_today(name):
    written = (sample_files.FOLDER / name).read_text()
    assert written == sample_files.texts()[name], "run: python tests/support/sample_files.py"


def test_definitions_have_the_file_names_of_virtualcluster():
    folder = sample_files.FOLDER.parent / "crds"
    found = {yaml.safe_load(path.read_text())["metadata"]["name"]: path.name for path in folder.glob("*.yaml")}
    assert found.keys() == {one.name for one in installing.definitions()} | {"clusters.cluster.x-k8s.io"}
    assert {f"{group}_{plural}.yaml" for plural, _, group in (name.partition(".") for name in found)} == set(
        found.values()
    )
