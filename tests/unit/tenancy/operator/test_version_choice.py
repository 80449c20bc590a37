"""Which ClusterVersion a control plane is brought to."""

import pytest

import virtual_clusters
from hansa.tenancy import api
from hansa.tenancy.operator import version_choice
from hansa.tenancy.operator.version_choice import MissingVersion


def a_vc(version="cv", *, asks=False, has_run=True):
    made = virtual_clusters.virtual_cluster("vc", "ns", clusterVersionName=version)
    labels = {"tenancy.x-k8s.io/ready-for-upgrade": "true"} if asks else {}
    labels |= {"tenancy.x-k8s.io/cluster-version-applied": "1"} if has_run else {}
    return api.virtual_cluster(made.with_metadata(labels=labels))


def a_version(name="cv", version="1"):
    return api.cluster_version(virtual_clusters.cluster_version(name).with_metadata(resource_version=version))


def test_the_first_one_is_what_is_there():
    assert version_choice.choose(a_vc(), a_version(), None).is_new


def test_a_version_that_changed_waits_for_the_label():
    old, new = a_version(), a_version(version="2")
    assert version_choice.choose(a_vc(), new, old).version is old
    chosen = version_choice.choose(a_vc(asks=True), new, old)
    assert (chosen.version, chosen.is_new) == (new, True)


def test_a_fixed_version_is_applied_at_once_where_it_never_ran():
    chosen = version_choice.choose(a_vc(has_run=False), a_version(version="2"), a_version())
    assert (chosen.version.version, chosen.is_new) == ("2", True)


def test_the_label_alone_changes_nothing():
    assert not version_choice.choose(a_vc(asks=True), a_version(), a_version()).is_new


def test_another_name_is_an_upgrade():
    chosen = version_choice.choose(a_vc("next"), a_version("next"), a_version())
    assert (chosen.version.name, chosen.is_new) == ("next", True)


def test_a_running_control_plane_keeps_its_version_while_the_wanted_one_is_missing():
    chosen = version_choice.choose(a_vc("next"), None, a_version())
    assert (chosen.version.name, chosen.is_new) == ("cv", False)
    assert 'ClusterVersion "next" not found' in chosen.missing


def test_without_any_there_is_nothing_to_make():
    with pytest.raises(MissingVersion, match="create it"):
        version_choice.choose(a_vc(), None, None)
