"""Gives each tenant a range of service addresses that no other tenant has. Pure: what is used is told by the caller."""

from collections.abc import Iterable
from dataclasses import dataclass

from hansa.tenancy.api import BadVirtualCluster, Network

DEFAULT_RANGE = "10.224.0.0/11"
DEFAULT_PREFIX = 20  # 4,094 services for each tenant, and room for 512 tenants


@dataclass(frozen=True, slots=True)
class ServicePool:
    """A range that is handed out in equal parts."""

    range: Network
    prefix: int = DEFAULT_PREFIX

    def __post_init__(self) -> None:
        if not self.range.prefixlen <= self.prefix <= self.range.max_prefixlen - 4:
            raise BadVirtualCluster(
                f"the service range {self.range} cannot be cut into parts of /{self.prefix}: the prefix must be longer"
                f" than /{self.range.prefixlen}, and leave each tenant at least 16 addresses"
            )

    def free(self, used: Iterable[Network]) -> Network:
        """The first part that overlaps none of those in use."""
        taken = [one for one in used if one.version == self.range.version]
        for part in self.range.subnets(new_prefix=self.prefix):
            if not any(part.overlaps(one) for one in taken):
                return part
        raise BadVirtualCluster(
            f"all service ranges of {self.range} are in use; give the manager a larger one with --service-range,"
            " or name one in spec.serviceCidr"
        )
