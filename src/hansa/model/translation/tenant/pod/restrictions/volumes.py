"""Restrictions on the types of a pod's volumes: those that have only what is the tenant's own."""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from hansa.model.translation.tenant.pod.restrictions.pod_spec import Lax, PodSpec, Violation
from hansa.model.translation.tenant.tenant_settings import VOLUME_TYPES, Allowance

TYPES: Final = frozenset(
    {
        *("configMap", "secret", "emptyDir", "projected", "downwardAPI"),
        *("persistentVolumeClaim", "ephemeral", "image"),
    }
)
SOURCES: Final = frozenset({"configMap", "secret", "downwardAPI", "serviceAccountToken"})
_NULL: Final = b"null"
_SHOWN: Final = 80  # bytes of a volume in a message


class _Projected(Lax):
    sources: tuple[dict[str, msgspec.Raw], ...] | None = None


class _Template(Lax):
    spec: dict[str, Any]


class _Ephemeral(Lax):
    volume_claim_template: _Template


_EPHEMERAL: Final = msgspec.json.Decoder(_Ephemeral)
_PROJECTED: Final = msgspec.json.Decoder(_Projected)
_NO_NAME: Final = msgspec.Raw(b'""')


def violations(spec: PodSpec) -> Iterator[Violation]:
    """Volumes, and sources of projected volumes, of another type."""
    for volume in spec.volumes or ():
        for kind, value in volume.items():
            if kind == "projected":
                yield from _sources(volume, value)
            elif kind not in TYPES and kind != "name" and bytes(value) != _NULL:
                allowance = Allowance(kind) if kind in VOLUME_TYPES else None
                yield Violation(f"{_path(volume)}.{kind}: {bytes(value)[:_SHOWN].decode(errors='replace')}", allowance)


def claim_templates(spec: PodSpec) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The path, the volume's name and the claim's spec of each ephemeral volume."""
    for volume in spec.volumes or ():
        if "ephemeral" in volume:
            with contextlib.suppress(msgspec.ValidationError):  # its claim is refused as well
                template = _EPHEMERAL.decode(volume["ephemeral"]).volume_claim_template
                yield f"{_path(volume)}.ephemeral.volumeClaimTemplate.spec", _name(volume), template.spec


def _sources(volume: dict[str, msgspec.Raw], projected: msgspec.Raw) -> Iterator[Violation]:
    path = f"{_path(volume)}.projected"
    try:
        sources = _PROJECTED.decode(projected).sources or ()
    except msgspec.ValidationError as error:
        yield Violation(f"{path} ({error})", None)
        return
    for source in sources:
        for kind, value in source.items():
            if kind not in SOURCES and bytes(value) != _NULL:
                yield Violation(f"{path}.sources.{kind}", None)


def _path(volume: dict[str, msgspec.Raw]) -> str:
    return f"spec.volumes[{_name(volume)}]"


def _name(volume: dict[str, msgspec.Raw]) -> str:
    return bytes(volume.get("name", _NO_NAME)).decode().strip('"')
