"""Pods and Services of a tenant, and their copies and patches in the mode virtualcluster.

Used by unit tests of tenant translations.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import golden_files
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model.lookups import Lookups
from hansa.model.mode import PatchPart
from hansa.model.pair import Key, Link
from hansa.modes.virtualcluster_settings import TenantSettings
from surroundings import Surroundings


def _lookups(above: Iterable[Object] = (), below: Iterable[Object] = ()) -> Lookups:
    """Lookups that allow any read, as `Surroundings` do."""
    return cast("Lookups", Surroundings(above, below))


MODE, LINK = golden_files.VIRTUALCLUSTER, replace(golden_files.TENANT, lookups=_lookups())
SETTINGS = LINK.settings_as(TenantSettings)
KEY = SETTINGS.key
API = {"clusterIP": "10.32.0.1", "ports": [{"name": "https", "port": 443}]}


def a_link(above: Iterable[Object] = (), below: Iterable[Object] = (), **settings: Any) -> Link:
    """The link of a tenant with these settings, and the objects that its steps may read."""
    return replace(LINK, settings=replace(SETTINGS, **settings), lookups=_lookups(above, below))


def a_pod(spec: dict[str, Any] | None = None, **metadata: Any) -> Object:
    """A tenant's pod; by default with one container."""
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
    """The desired copy in the super cluster."""
    return MODE.desired(upper, Key(link.upper, resource, *upper.key), link)


def follow(lower: Object, upper: Object, resource: Resource = resources.PODS, link: Link = LINK) -> list[PatchPart]:
    """The patches of the lower object."""
    return list(MODE.rules[resource].down_patches(lower, desired(upper, link, resource)))


def upper_patches(
    upper: Object, lower: Object, resource: Resource = resources.PODS, link: Link = LINK
) -> list[PatchPart]:
    """The patches of the upper object."""
    up_patches = MODE.rules[resource].up_patches
    assert up_patches is not None
    return list(up_patches(upper, lower, link))


def refusal(upper: Object, link: Link = LINK, resource: Resource = resources.PODS) -> str:
    """Why it is not synced; empty if it is."""
    check = MODE.rules[resource].check
    assert check is not None
    return check(upper, link)
