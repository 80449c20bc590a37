"""Pods and Services as tests of tenants write them, and what VirtualCluster makes of them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import golden_files
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model.mode import PatchPart
from hansa.model.pair import Key, Link
from surroundings import Surroundings

MODE, LINK = golden_files.VIRTUALCLUSTER, replace(golden_files.TENANT, lookups=Surroundings())
KEY = LINK.settings.key
API = {"clusterIP": "10.32.0.1", "ports": [{"name": "https", "port": 443}]}


def a_link(above: Iterable[Object] = (), below: Iterable[Object] = (), **settings: Any) -> Link:
    """The link of a tenant with these settings, and what there is besides."""
    return replace(LINK, settings=replace(LINK.settings, **settings), lookups=Surroundings(above, below))


def a_pod(spec: dict[str, Any] | None = None, **metadata: Any) -> Object:
    """A tenant's pod with one container, unless its spec says otherwise."""
    whole = {"containers": [{"name": "main", "image": "main:1"}]} | (spec or {})
    names = {"name": "web", "namespace": "shop", "uid": "upper-uid"}
    return Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": names | metadata, "spec": whole})


def an_object(kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    """Any object."""
    labels = fields.pop("labels", {})
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", "labels": labels}
    return Object.of({"kind": kind, "metadata": metadata} | fields)


def a_service(name: str, namespace: str = "shop", **spec: Any) -> Object:
    """A Service."""
    return an_object("Service", name, namespace, spec=spec)


def desired(upper: Object, link: Link = LINK, resource: Resource = resources.PODS) -> Object:
    """The copy in the super cluster as it should be."""
    return MODE.desired(upper, Key(link.upper, resource, *upper.key), link)


def follow(lower: Object, upper: Object, resource: Resource = resources.PODS, link: Link = LINK) -> list[PatchPart]:
    """What is written down."""
    return list(MODE.rules[resource].down_patches(lower, desired(upper, link, resource)))


def tell(upper: Object, lower: Object, resource: Resource = resources.PODS, link: Link = LINK) -> list[PatchPart]:
    """What is written up."""
    return list(MODE.rules[resource].up_patches(upper, lower, link))


def refusal(upper: Object, link: Link = LINK, resource: Resource = resources.PODS) -> str:
    """Why it may not travel."""
    return MODE.rules[resource].check(upper, link)
