"""Whether clocks agree: those of API servers, of this machine, and of the programs that renew Leases. Pure."""

import datetime
from collections.abc import Iterable, Iterator
from typing import Final

from hansa.app.doctor import finding
from hansa.app.doctor.finding import Finding
from hansa.app.doctor.visiting import Visit
from hansa.app.status import section
from hansa.kube.objects import Object

CHECK: Final = "clocks"
SPARE_SECONDS: Final = 5.0
SERIOUS_SECONDS: Final = 300.0  # by which certificates are backdated
REMEDY: Final = 'set the clock by NTP ("timedatectl set-ntp true", or chronyd)'


def examine(visits: Iterable[Visit], leases: Iterable[Object], now: datetime.datetime) -> Iterator[Finding]:
    """The findings. `now` is the time of the API server, by which Leases are judged."""
    reached = [one for one in visits if one.error is None]
    apart = [one for one in reached if abs(one.ahead) > SPARE_SECONDS]
    for one in apart:
        yield _server(one)
    early = [(lease, ahead) for lease in leases if (ahead := _ahead(lease, now)) > SPARE_SECONDS]
    for lease, ahead in early:
        yield finding.warning(
            CHECK,
            f"Lease {lease.key} was renewed {ahead:.0f} s in the future by {lease.spec.get('holderIdentity')}",
            why="its certificates and tokens may be refused as not valid yet, and ages that are shown are wrong",
            remedy=f"on the machine of the holder, {REMEDY}",
        )
    if reached and not apart and not early:
        yield finding.fine(CHECK, f"{len(reached)} API servers and this machine differ by {SPARE_SECONDS:g} s at most")


def _server(one: Visit) -> Finding:
    what = (
        f"{one}: its clock is {abs(one.ahead):.0f} s {'ahead of' if one.ahead > 0 else 'behind'} that of this machine"
    )
    remedy = f"on the machine of the API server, or here, {REMEDY}"
    if abs(one.ahead) <= SERIOUS_SECONDS:
        return finding.warning(CHECK, what, why="ages and times that are shown are wrong by that much", remedy=remedy)
    why = "new certificates and tokens are refused as expired or not valid yet"
    return finding.problem(CHECK, what, why=why, remedy=remedy)


def _ahead(lease: Object, now: datetime.datetime) -> float:
    renewed = section.moment(lease.spec.get("renewTime"))
    return 0.0 if renewed is None else (renewed - now).total_seconds()
