"""How long a Lease lasts, when its holder stops without a renewal, and how often it renews. Pure."""

from dataclasses import dataclass

from hansa.runtime import errors


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds: lease duration, renew deadline after which the holder stops, and period of renewals and retries."""

    lease: float
    renew: float
    retry: float

    def __post_init__(self) -> None:
        if not (0 < self.retry < self.renew < self.lease and self.lease >= 1):
            raise errors.HansaError(f"{self} is not valid: it needs 0 < retry < renew < lease, and lease >= 1")
