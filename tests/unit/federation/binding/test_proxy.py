"""What is read of a proxy pod."""

import pytest

from hansa.federation.binding import proxy
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.runtime.errors import HansaError
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


@pytest.mark.parametrize("text", ["", "{", "a: [", "- 1", "{}"])
def test_an_unreadable_manifest_is_an_error(text):
    with pytest.raises(HansaError):
        proxy.request_of(a_proxy().with_metadata(annotations={keys.SOURCE_POD: text}))


def test_pods_of_one_template_are_of_one_kind():
    kinds = {proxy.request_of(a_proxy(name)).kind for name in ("a", "b")}
    assert len(kinds) == 1
    assert proxy.request_of(a_proxy(cpu="2")).kind not in kinds
