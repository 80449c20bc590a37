"""Allocates a service CIDR for each tenant that overlaps no other. Pure: the caller passes those in use."""

from collections.abc import Iterable
from dataclasses import dataclass

from hansa.tenancy.api import BadVirtualCluster, Network

DEFAULT_RANGE = "10.224.0.0/11"
DEFAULT_PREFIX = 20  # 4,094 services for each tenant, and room for 512 tenants


@dataclass(frozen=True, slots=True)
class ServiceCidrPool:
    """A range that is divided into subnets of equal size, one for each tenant."""

    range: Network
    prefix: int = DEFAULT_PREFIX

    def __post_init__(self) -> None:
        if not self.range.prefixlen <= self.prefix <= self.range.max_prefixlen - 4:
            raise BadVirtualCluster(
                f"--service-range {self.range} cannot be divided into subnets of /{self.prefix}: --service-prefix must"
                f" be from {self.range.prefixlen} to {self.range.max_prefixlen - 4}"
            )

    def free(self, used: Iterable[Network]) -> Network:
        """The first subnet that overlaps none of those in use."""
        taken = [one for one in used if one.version == self.range.version]
        for part in self.range.subnets(new_prefix=self.prefix):
            if not any(part.overlaps(one) for one in taken):
                return part
        raise BadVirtualCluster(
            f"all /{self.prefix} subnets of --service-range {self.range} are in use; start the manager with a larger"
            " range, or set spec.serviceCidr"
        )
