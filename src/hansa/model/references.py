"""The objects that a pod refers to by name, and the service account tokens that it mounts.

Read from the pod's spec. A new kind of reference is a new field in one of the structs below.
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource

DEFAULT_ACCOUNT = "default"
DEFAULT_LIFETIME = 3600  # seconds, the default of the API


class Missing(Enum):
    """What happens to an object when another one that it refers to does not exist in the upper cluster."""

    IGNORED = auto()  # it is synced: an object of that name in the lower cluster is used
    REQUIRED = auto()  # it waits until the other one exists
    PLACEHOLDER = auto()  # it is synced with an empty copy, so that an object of the lower cluster is not used instead


class Reference(NamedTuple):
    """An object that a pod refers to. An optional one need not exist."""

    resource: Resource
    namespace: str
    name: str
    is_optional: bool = False
    is_for_pulling: bool = False  # an imagePullSecret: no container reads it
    missing: Missing = Missing.IGNORED


class Token(NamedTuple):
    """A token that a pod mounts. Pods share one if service account, audience and lifetime are the same."""

    namespace: str
    service_account: str
    audience: str = ""  # empty: the API server
    seconds: int = DEFAULT_LIFETIME


class PodReferences(NamedTuple):
    """All references of one pod. Each object is listed once, as optional only if every reference to it is."""

    objects: tuple[Reference, ...] = ()
    tokens: tuple[Token, ...] = ()


def of_pod(pod: Object) -> PodReferences:
    """All references of a pod."""
    spec = pod.decode("spec", _Spec)
    account = spec.service_account_name or DEFAULT_ACCOUNT
    found: dict[tuple[Resource, str], bool] = {(resources.SERVICE_ACCOUNTS, account): False}
    for resource, name, is_optional in _named(spec, pod.name):
        if name:
            found[resource, name] = found.get((resource, name), True) and is_optional
    objects = [Reference(resource, pod.namespace, name, optional) for (resource, name), optional in found.items()]
    for name in dict.fromkeys(one.name for one in spec.image_pull_secrets or ()):
        if name and (resources.SECRETS, name) not in found:
            # The kubelet skips a missing one: the image may be public.
            objects.append(Reference(resources.SECRETS, pod.namespace, name, is_optional=True, is_for_pulling=True))
    tokens = (Token(pod.namespace, account, one.audience, one.expiration_seconds) for one in _tokens(spec))
    return PodReferences(tuple(objects), tuple(dict.fromkeys(tokens)))


def objects_of_pod(pod: Object) -> tuple[Reference, ...]:
    """The objects that a pod refers to."""
    return of_pod(pod).objects


def of_added_containers(pod: Object) -> Iterator[Reference]:
    """The objects that ephemeral containers refer to: these are added after the pod's creation."""
    for container in pod.decode("spec", _Spec).ephemeral_containers or ():
        for resource, name, is_optional in _in_container(container):
            if name:
                yield Reference(resource, pod.namespace, name, is_optional)


def ephemeral_claim(pod: str, volume: str) -> str:
    """The name of the claim that is created for a pod's ephemeral volume."""
    return f"{pod}-{volume}"


class _Struct(msgspec.Struct, gc=False, rename="camel"):
    """A part of a pod's spec; null means absent."""


class _Named(_Struct):
    name: str = ""
    optional: bool | None = None


class _WithSecret(_Struct):
    secret_ref: _Named | None = None


class _Csi(_Struct):
    node_publish_secret_ref: _Named | None = None


class _SecretVolume(_Struct):
    secret_name: str = ""
    optional: bool | None = None


class _Claim(_Struct):
    claim_name: str = ""


class _Ephemeral(_Struct):
    pass


class _TokenProjection(_Struct):
    audience: str = ""
    expiration_seconds: int = DEFAULT_LIFETIME


class _Source(_Struct):
    secret: _Named | None = None
    config_map: _Named | None = None
    service_account_token: _TokenProjection | None = None


class _Projected(_Struct):
    sources: tuple[_Source, ...] | None = None


class _Volume(_Struct):
    name: str = ""
    secret: _SecretVolume | None = None
    config_map: _Named | None = None
    projected: _Projected | None = None
    persistent_volume_claim: _Claim | None = None
    ephemeral: _Ephemeral | None = None
    csi: _Csi | None = None
    azure_file: _SecretVolume | None = None
    cephfs: _WithSecret | None = None
    cinder: _WithSecret | None = None
    flex_volume: _WithSecret | None = None
    iscsi: _WithSecret | None = None
    rbd: _WithSecret | None = None
    scale_io: _WithSecret | None = msgspec.field(name="scaleIO", default=None)
    storageos: _WithSecret | None = None


class _ValueFrom(_Struct):
    config_map_key_ref: _Named | None = None
    secret_key_ref: _Named | None = None


class _Variable(_Struct):
    value_from: _ValueFrom | None = None


class _Variables(_Struct):
    config_map_ref: _Named | None = None
    secret_ref: _Named | None = None


class _Container(_Struct):
    env: tuple[_Variable, ...] | None = None
    env_from: tuple[_Variables, ...] | None = None


class _Spec(_Struct):
    service_account_name: str = ""
    image_pull_secrets: tuple[_Named, ...] | None = None
    volumes: tuple[_Volume, ...] | None = None
    containers: tuple[_Container, ...] | None = None
    init_containers: tuple[_Container, ...] | None = None
    ephemeral_containers: tuple[_Container, ...] | None = None


_Found = tuple[Resource, str, bool]


def _named(spec: _Spec, pod: str) -> Iterator[_Found]:
    for volume in spec.volumes or ():
        yield from _in_volume(volume, pod)
    for containers in (spec.init_containers, spec.containers, spec.ephemeral_containers):
        for container in containers or ():
            yield from _in_container(container)


def _in_volume(volume: _Volume, pod: str) -> Iterator[_Found]:
    for secret in (volume.secret, volume.azure_file):
        if secret:
            yield resources.SECRETS, secret.secret_name, bool(secret.optional)
    for plugin in (
        *(volume.cephfs, volume.cinder, volume.flex_volume, volume.iscsi),
        *(volume.rbd, volume.scale_io, volume.storageos),
    ):
        if plugin and plugin.secret_ref:
            yield resources.SECRETS, plugin.secret_ref.name, False
    if volume.csi and volume.csi.node_publish_secret_ref:
        yield resources.SECRETS, volume.csi.node_publish_secret_ref.name, False
    if volume.config_map:
        yield _one(resources.CONFIG_MAPS, volume.config_map)
    if volume.persistent_volume_claim:
        yield resources.PERSISTENT_VOLUME_CLAIMS, volume.persistent_volume_claim.claim_name, False
    if volume.ephemeral:
        yield resources.PERSISTENT_VOLUME_CLAIMS, ephemeral_claim(pod, volume.name), False
    for source in _sources(volume):
        yield from _both(source.config_map, source.secret)


def _in_container(container: _Container) -> Iterator[_Found]:
    for variable in container.env or ():
        if variable.value_from:
            yield from _both(variable.value_from.config_map_key_ref, variable.value_from.secret_key_ref)
    for variables in container.env_from or ():
        yield from _both(variables.config_map_ref, variables.secret_ref)


def _both(config_map: _Named | None, secret: _Named | None) -> Iterator[_Found]:
    if config_map:
        yield _one(resources.CONFIG_MAPS, config_map)
    if secret:
        yield _one(resources.SECRETS, secret)


def _one(resource: Resource, named: _Named) -> _Found:
    return resource, named.name, bool(named.optional)


def _tokens(spec: _Spec) -> Iterator[_TokenProjection]:
    for volume in spec.volumes or ():
        for source in _sources(volume):
            if source.service_account_token:
                yield source.service_account_token


def _sources(volume: _Volume) -> tuple[_Source, ...]:
    return volume.projected.sources or () if volume.projected else ()
