"""What a VirtualCluster says by annotations, and what is told when it cannot be read."""

import pytest

from hansa.kube.objects import Object
from hansa.model.translation.tenant.tenant_settings import Allowance
from hansa.tenancy.syncing.annotations import TenantAnnotations, of


def read(**words):
    annotations = {f"tenancy.x-k8s.io/{word}": value for word, value in words.items()}
    return of(Object.of({"kind": "VirtualCluster", "metadata": {"name": "one", "annotations": annotations}}))


def test_who_says_nothing_has_one_share_and_no_allowance():
    assert read() == read(weight="", allow=" , ") == TenantAnnotations(1.0, frozenset(), ())


@pytest.mark.parametrize(("text", "weight"), [("3", 3), (" 0.5 ", 0.5), ("100", 100), ("0.01", 0.01)])
def test_a_weight_is_a_number(text, weight):
    assert read(weight=text) == TenantAnnotations(weight)


@pytest.mark.parametrize("text", ["much", "-1", "0", "nan", "inf", "101", "1,5"])
def test_a_weight_that_makes_no_sense_is_told_and_is_1(text):
    [sentence] = read(weight=text).unread
    assert sentence == f'tenancy.x-k8s.io/weight "{text}" is not a number from 0.01 to 100: the weight 1 is used'
    assert read(weight=text).weight == 1


def test_allowances_are_words():
    assert read(allow="hostPath, privileged,") == TenantAnnotations(
        allowed=frozenset({Allowance.HOST_PATH, Allowance.PRIVILEGED})
    )


def test_words_that_nobody_knows_are_told_and_allow_nothing_but_the_others_do():
    found = read(allow="hostPath,hostpath,everything")
    assert found.allowed == {Allowance.HOST_PATH}
    [sentence] = found.unread
    assert sentence.startswith(
        'tenancy.x-k8s.io/allow names "everything, hostpath", which allows nothing: there are hostPath, hostNetwork, '
    )


def test_each_annotation_has_a_sentence_of_its_own_and_of_long_ones_the_beginning_is_shown():
    weight, allow = read(weight="9" * 1000, allow="x" * 1000).unread
    assert len(weight) < 200
    assert len(allow) < 350
