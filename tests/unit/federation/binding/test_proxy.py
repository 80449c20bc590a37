"""What is read of a proxy pod."""

import pytest
import yaml

from hansa.federation.binding import proxy
from hansa.kube.objects import Object
from hansa.model import keys
from proxies import a_proxy


def changed(**spec):
    pod = a_proxy()
    return pod.with_fields(spec={**pod.spec, **spec})


@pytest.mark.parametrize(
    ("pod", "is_waiting"),
    [
        (a_proxy(), True),
        (changed(nodeName="c1"), False),
        (changed(schedulingGates=[{"name": "queue"}]), False),
        (changed(schedulingGates=[]), True),
        (changed(schedulerName="default-scheduler"), False),
        (a_proxy().with_metadata(deletion_timestamp="2026-01-01T00:00:00Z"), False),
        (a_proxy().with_metadata(annotations={}), False),
        (a_proxy().with_fields(status={"phase": "Failed"}), False),
    ],
)
def test_a_pod_waits_until_it_is_bound_ended_deleted_or_gated(pod: Object, is_waiting):
    assert proxy.is_waiting(pod) is is_waiting


def test_a_bound_proxy_counts_until_it_ends():
    assert proxy.is_bound(changed(nodeName="c1"))
    assert not proxy.is_bound(a_proxy())
    assert not proxy.is_bound(changed(nodeName="c1").with_fields(status={"phase": "Succeeded"}))


def test_the_original_manifest_may_be_yaml_as_in_the_reference():
    pod = a_proxy(cpu="2", nodeSelector={"disk": "ssd"})
    as_yaml = yaml.safe_dump(proxy.source_pod(pod).to_dict())
    in_yaml = pod.with_metadata(annotations={keys.SOURCE_POD: as_yaml})
    assert proxy.request_of(in_yaml) == proxy.request_of(pod)
    assert proxy.request_of(pod).delegate.affinity.labels.matches({"disk": "ssd"})


@pytest.mark.parametrize("text", ["", "{", "a: [", "- 1", "{}"])
def test_an_unreadable_manifest_is_an_error_that_names_the_annotation(text):
    pod = a_proxy().with_metadata(annotations={keys.SOURCE_POD: text})
    if text == "{}":
        assert proxy.source_pod(pod).spec == {}
        return
    with pytest.raises(proxy.InvalidProxy, match="sourcepod-manifest"):
        proxy.source_pod(pod)


def test_pods_of_one_template_are_of_one_kind():
    kinds = {proxy.request_of(a_proxy(name)).kind for name in ("a", "b")}
    assert len(kinds) == 1
    assert proxy.request_of(a_proxy(cpu="2")).kind not in kinds
