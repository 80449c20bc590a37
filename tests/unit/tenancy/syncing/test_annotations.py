"""Annotations of a VirtualCluster, and the messages about invalid ones."""

import pytest

from hansa.kube.objects import Object
from hansa.model.translation.tenant.tenant_settings import Allowance, PodSecurity
from hansa.tenancy.syncing.annotations import TenantAnnotations, of


def read(**words):
    annotations = {f"tenancy.x-k8s.io/{word}": value for word, value in words.items()}
    return of(Object.of({"kind": "VirtualCluster", "metadata": {"name": "one", "annotations": annotations}}))


def test_without_annotations_the_weight_is_1_and_nothing_is_allowed():
    assert read() == read(weight="", allow=" , ") == TenantAnnotations(1.0, frozenset())


@pytest.mark.parametrize(("text", "weight"), [("3", 3), (" 0.5 ", 0.5), ("100", 100), ("0.01", 0.01)])
def test_a_weight_is_a_number(text, weight):
    assert read(weight=text) == TenantAnnotations(weight)


@pytest.mark.parametrize("text", ["much", "-1", "0", "nan", "inf", "101", "1,5"])
def test_an_invalid_weight_is_reported_and_is_1(text):
    [sentence] = read(weight=text).invalid
    assert sentence == f'annotation tenancy.x-k8s.io/weight: "{text}" is not a number from 0.01 to 100; using 1'
    assert read(weight=text).weight == 1


def test_whether_a_tenant_gets_a_dns_is_true_or_false():
    assert [read(dns=text).dns for text in ("", "true", "false", "yes")] == [None, True, False, None]
    [sentence] = read(dns="yes").invalid
    assert sentence == 'annotation tenancy.x-k8s.io/dns: "yes" is not true or false; using the default'


def test_allowances_are_a_comma_separated_list():
    assert read(allow="hostPath, privileged,") == TenantAnnotations(
        allowed=frozenset({Allowance.HOST_PATH, Allowance.PRIVILEGED})
    )


def test_unknown_allowances_are_reported_and_the_known_ones_apply():
    found = read(allow="hostPath,hostpath,everything")
    assert found.allowed == {Allowance.HOST_PATH}
    [sentence] = found.invalid
    assert sentence.startswith(
        'annotation tenancy.x-k8s.io/allow: unknown allowance "everything, hostpath"; supported: hostPath, '
    )


def test_an_invalid_entry_of_a_list_is_reported_and_the_others_apply():
    found = read(**{"synced-annotations": "example.com/*, Service:example.org/x, *.example.net/x"})
    assert found.lists.synced_annotations == {"example.com/*", "Service:example.org/x"}
    [sentence] = found.invalid
    assert sentence == (
        'annotation tenancy.x-k8s.io/synced-annotations: "*.example.net/x" is not KEY, PREFIX* or KIND:KEY'
    )


def test_the_level_of_pod_security_is_a_standard_and_an_invalid_one_is_the_strictest():
    assert read(**{"pod-security": "restricted"}) == TenantAnnotations(pod_security=PodSecurity.RESTRICTED)
    found = read(**{"pod-security": "privileged"})
    assert found.pod_security is PodSecurity.RESTRICTED
    assert found.invalid == (
        'annotation tenancy.x-k8s.io/pod-security: "privileged" is not baseline or restricted; using restricted,'
        " which allows least",
    )


def test_each_annotation_has_a_sentence_of_its_own_and_of_long_ones_the_beginning_is_shown():
    weight, allow = read(weight="9" * 1000, allow="x" * 1000).invalid
    assert len(weight) < 200
    assert len(allow) < 700
