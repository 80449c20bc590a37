"""The hosts, backends, classes and Secrets of a tenant's Ingresses."""

import pytest

from hansa.kube import resources
from hansa.model.references import Missing
from hansa.model.translation.tenant import ingresses
from hansa.model.translation.tenant.tenant_lists import TenantLists
from tenants import MODE, a_link, an_object, desired, refusal

SERVICE = {"service": {"name": "web", "port": {"number": 80}}}
OFFERED = an_object("IngressClass", "nginx", labels={"tenancy.x-k8s.io/super.public": "true"})


def an_ingress(*hosts, **spec):
    rules = [{"host": host} if host else {} for host in hosts]
    return an_object("Ingress", "web", "shop", spec={"ingressClassName": "nginx", "rules": rules} | spec)


def why(obj, *allowed):
    link = a_link(below=[OFFERED], lists=TenantLists(ingress_hosts=frozenset(allowed)))
    return refusal(obj, link, resources.INGRESSES)


@pytest.mark.parametrize(
    ("obj", "allowed", "is_synced"),
    [
        (an_ingress("a.example.com"), (), False),
        (an_ingress("a.example.com"), ("a.example.com",), True),
        (an_ingress("a.example.com"), ("*.example.com",), True),
        (an_ingress("b.a.example.com"), ("*.example.com",), True),
        (an_ingress("*.example.com"), ("*.example.com",), True),
        (an_ingress("*.example.com"), ("a.example.com",), False),
        (an_ingress("example.com"), ("*.example.com",), False),
        (an_ingress("badexample.com"), ("*.example.com",), False),
        (an_ingress("a.example.com", "b.example.com"), ("a.example.com",), False),
        (an_ingress(""), ("*.example.com",), False),
        (an_ingress("", defaultBackend=SERVICE), ("*",), True),
        (an_ingress("a.example.com", defaultBackend=SERVICE), ("a.example.com",), False),
        (an_ingress("a.example.com", tls=[{"hosts": ["a.example.com"]}]), ("a.example.com",), True),
        (an_ingress("a.example.com", tls=[{"hosts": ["b.example.com"]}]), ("a.example.com",), False),
    ],
)
def test_an_ingress_serves_only_hosts_of_the_list(obj, allowed, is_synced):
    assert (why(obj, *allowed) == "") is is_synced


def test_the_message_names_field_host_and_remedy():
    allow = "is not allowed for tenant vc-sample-1; allow it with annotation tenancy.x-k8s.io/ingress-hosts on its"
    assert why(an_ingress("a.io")).startswith(f"spec.rules[0].host: a.io {allow}")
    assert why(an_ingress("")).startswith(f"spec.rules[0].host, which serves every host, {allow}")


def test_a_backend_is_a_service():
    bucket = {"resource": {"apiGroup": "k8s.example.com", "kind": "Bucket", "name": "b"}}
    assert "spec.defaultBackend.resource is not supported" in why(an_ingress(defaultBackend=bucket), "*")
    rule = {"host": "a.io", "http": {"paths": [{"path": "/", "backend": bucket}]}}
    found = why(an_object("Ingress", "web", "shop", spec={"ingressClassName": "nginx", "rules": [rule]}), "*")
    assert "spec.rules[0].http.paths[0].backend.resource is not supported" in found


@pytest.mark.parametrize("unset", [None, ""])
def test_an_ingress_without_a_class_is_not_served_by_the_default_class_of_the_super_cluster(unset):
    assert why(an_ingress("a.io", ingressClassName=unset), "*") == (
        "spec.ingressClassName is not set and the tenant has no default IngressClass; name one that 'kubectl get"
        " ingressclasses' lists"
    )


def test_the_class_may_be_in_the_annotation_and_is_in_the_spec_of_the_copy():
    def named(name):
        return an_ingress("a.io", ingressClassName=None).with_metadata(
            annotations={"kubernetes.io/ingress.class": name}
        )

    assert "IngressClass mine is not offered" in why(named("mine"), "*")
    assert why(named("nginx"), "*") == ""
    lower = desired(named("nginx"), resource=resources.INGRESSES)
    assert lower.spec["ingressClassName"] == "nginx"
    assert "kubernetes.io/ingress.class" not in lower.annotations


def test_a_secret_that_the_tenant_does_not_have_gets_an_empty_copy():
    obj = an_ingress("a.io", tls=[{"secretName": "cert"}, {"hosts": ["a.io"]}])
    [reference] = ingresses.secrets(obj)
    assert (reference.namespace, reference.name, reference.missing) == ("shop", "cert", Missing.PLACEHOLDER)
    assert MODE.rules[resources.INGRESSES].references is ingresses.secrets
