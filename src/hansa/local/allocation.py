"""Allocates what clusters must not share: a slot for the networks of each, and ports on loopback.

Used by `up`. Its only I/O is to check whether a port is free; callers hold the state's lock and save the record.
"""

from collections.abc import Collection, Sequence

import msgspec

from hansa.local.control_plane.command_lines import Site
from hansa.local.machines import addresses
from hansa.local.machines.addresses import Networks
from hansa.local.spec import ClusterSpec
from hansa.local.state import Record
from hansa.programs import components, ports
from hansa.runtime.errors import HansaError

LISTENERS = (components.APISERVER, components.CONTROLLERS, components.SCHEDULER)


def allocate(
    spec: ClusterSpec, *, others: Sequence[Record], former: Record | None, listening: Collection[str], seed: str
) -> Record:
    """The record of the cluster. Its former slot and ports are kept, except ports that another program has taken."""
    check_change(former, spec)
    kept = {
        component: port
        for component, port in (former.ports if former else {}).items()
        if component in listening or ports.is_free(port)
    }
    if spec.port is not None:
        _check_free(spec.port, listening, kept)
        kept[components.APISERVER] = spec.port
    missing = [c for c in LISTENERS if c not in kept]
    taken = {port for record in others for port in record.ports.values()} | set(kept.values())
    chosen = ports.choose(len(missing), taken=taken, seed=seed)
    slot = former.slot if former else _free_slot(others)
    return Record(spec, slot, kept | dict(zip(missing, chosen, strict=True)))


def loopback_site(record: Record) -> Site:
    """The addresses of a control plane on loopback. Its service and pod networks are not routed."""
    return Site(address=ports.LOOPBACK, ports=record.ports, networks=Networks(record.slot))


def check_change(former: Record | None, spec: ClusterSpec) -> None:
    """Refuse a change that needs a new cluster."""
    if former is not None and former.spec.is_networked != spec.is_networked:
        created = "with" if former.spec.is_networked else "without"
        raise HansaError(
            f"cluster {spec.name} was created {created} real nodes, which cannot be changed later;"
            f' run "hansa local down {spec.name}" first'
        )


def _check_free(port: int, listening: Collection[str], kept: dict[str, int]) -> None:
    is_ours = components.APISERVER in listening and kept.get(components.APISERVER) == port
    if not is_ours and not ports.is_free(port):
        raise ports.PortUnavailable(f"port {port} on {ports.LOOPBACK} is taken by another program")


def _free_slot(others: Sequence[Record]) -> int:
    used = {record.slot for record in others}
    free = next((slot for slot in addresses.SLOTS if slot not in used), None)
    if free is None:
        raise HansaError(f'there are {len(addresses.SLOTS)} local clusters already; run "hansa local down NAME" first')
    return free


def mark_deleting(record: Record) -> Record:
    """The record of a cluster whose deletion has begun."""
    return msgspec.structs.replace(record, is_deleting=True)
