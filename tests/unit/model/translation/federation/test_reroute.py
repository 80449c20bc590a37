"""A Service that selects proxy pods selects their delegates, until none is left; a user's manifest wins each time."""

from typing import Any

from golden_files import merged
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.translation.federation import reroute

PROXIES = [{"app": "nginx", "pod-template-hash": "1"}, {"app": "other"}]
REROUTED = {"multicluster.admiralty.io/app": "nginx"}


def a_service(selector: dict[str, str] | None = None, *, kind: str = "ClusterIP", **annotations: str) -> Object:
    metadata = {"namespace": "shop", "name": "nginx", "uid": "u1", "resourceVersion": "7", "annotations": annotations}
    spec: dict[str, Any] = {"type": kind} | ({"selector": selector} if selector else {})
    return Object.of({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


def patched(service: Object, proxies: list[dict[str, str]]) -> Object:
    """The Service after the patch, if there is one, and after a second one, which must not be needed."""
    patch = reroute.service_patch(service, proxies)
    if not patch:
        return service
    assert patch["metadata"].pop("resourceVersion") == service.version
    result = Object.of(merged(service.to_dict(), patch))
    assert reroute.service_patch(result, proxies) == {}, "one patch is enough"
    return result


def selector_of(service: Object) -> dict[str, str]:
    selector: dict[str, str] = service.spec["selector"]
    return selector


def test_a_service_that_selects_proxy_pods_is_rerouted_and_global() -> None:
    rerouted = patched(a_service({"app": "nginx"}), PROXIES)
    assert selector_of(rerouted) == REROUTED
    assert rerouted.annotations["io.cilium/global-service"] == "true"
    assert rerouted.annotations["service.cilium.io/global"] == "true"
    assert rerouted.annotations[keys.ORIGINAL_SELECTOR] == "app=nginx"
    assert reroute.is_global(rerouted)


def test_other_services_stay_as_they_are() -> None:
    for service in (a_service({"app": "web"}), a_service(), a_service({"app": "nginx"}, kind="ExternalName")):
        assert reroute.service_patch(service, PROXIES) == {}
        assert not reroute.is_global(service)


def test_it_is_restored_when_no_proxy_pod_matches_any_more() -> None:
    service = a_service({"app": "nginx"}, **{"example.com/team": "shop"})
    restored = patched(patched(service, PROXIES), [{"app": "other"}])
    assert restored.to_dict() == service.to_dict()


def test_annotations_that_the_user_set_survive_the_reroute() -> None:
    service = a_service({"app": "nginx"}, **{"io.cilium/global-service": "false"})
    rerouted = patched(service, PROXIES)
    assert rerouted.annotations["io.cilium/global-service"] == "false"
    assert patched(rerouted, []).annotations == service.annotations


def test_a_manifest_that_is_applied_again_is_rerouted_again() -> None:
    rerouted = patched(a_service({"app": "nginx"}), PROXIES)
    applied = rerouted.with_fields(spec=rerouted.spec | {"selector": REROUTED | {"app": "nginx"}})
    assert patched(applied, PROXIES).to_dict() == rerouted.to_dict()


def test_a_new_selector_replaces_the_former_one() -> None:
    rerouted = patched(a_service({"app": "nginx"}), PROXIES)
    applied = rerouted.with_fields(spec=rerouted.spec | {"selector": REROUTED | {"app": "other"}})
    changed = patched(applied, PROXIES)
    assert selector_of(changed) == {"multicluster.admiralty.io/app": "other"}
    assert changed.annotations[keys.ORIGINAL_SELECTOR] == "app=other"
    without_proxies = applied.with_fields(spec=applied.spec | {"selector": REROUTED | {"app": "web"}})
    assert selector_of(patched(without_proxies, PROXIES)) == {"app": "web"}


def test_labels_that_keep_their_key_are_selected_by_it() -> None:
    service = a_service({"app": "nginx", "team": "red"}, **{keys.NO_PREFIX: "^team="})
    proxies = [{"app": "nginx", "team": "red"}]
    rerouted = patched(service, proxies)
    assert selector_of(rerouted) == REROUTED | {"team": "red"}
    assert selector_of(patched(rerouted, [])) == {"app": "nginx", "team": "red"}


def test_global_services_are_labelled_where_their_endpoints_are_copied() -> None:
    """EndpointSlices have the labels of their Service."""
    label = {"labels": {keys.GLOBAL_SERVICE: "true"}}
    service = a_service({"app": "web"}, **{"service.cilium.io/global": "true"})
    assert reroute.service_patch(service, PROXIES, labels_global=True) == {"metadata": label}
    assert reroute.service_patch(service.with_metadata(**label), PROXIES, labels_global=True) == {}
    removed = {"metadata": {"labels": {keys.GLOBAL_SERVICE: None}}}
    assert reroute.service_patch(service.with_metadata(**label), PROXIES) == removed
    rerouted = reroute.service_patch(a_service({"app": "nginx"}), PROXIES, labels_global=True)
    assert rerouted["metadata"]["labels"] == label["labels"]
    assert reroute.service_patch(a_service({"app": "web"}), PROXIES, labels_global=True) == {}


def test_a_copy_from_another_source_is_neither_rerouted_nor_copied_on() -> None:
    copy = a_service({"app": "nginx"}, **{keys.IS_DELEGATE: "", "io.cilium/global-service": "true"})
    assert reroute.service_patch(copy, PROXIES) == {}
    assert not reroute.is_global(copy)


def an_ingress(**annotations: str) -> Object:
    backend = {"service": {"name": "nginx", "port": {"number": 80}}}
    spec = {"rules": [{"host": "a.example.com"}, {"http": {"paths": [{"path": "/", "backend": backend}]}}]}
    metadata = {"namespace": "shop", "name": "nginx", "annotations": annotations}
    return Object.of({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec})


def test_an_ingress_is_global_while_it_leads_to_a_global_service() -> None:
    ingress = an_ingress(**{"example.com/team": "shop"})
    marked = Object.of(merged(ingress.to_dict(), reroute.ingress_patch(ingress, lambda name: name == "nginx")))
    assert reroute.is_global(marked)
    assert reroute.ingress_patch(marked, lambda _: True) == {}
    unmarked = Object.of(merged(marked.to_dict(), reroute.ingress_patch(marked, lambda _: False)))
    assert unmarked.to_dict() == ingress.to_dict()
    assert reroute.ingress_patch(ingress, lambda _: False) == {}
