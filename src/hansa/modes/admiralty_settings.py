"""Settings of the federation for one source cluster; `TargetLink` has those of one target."""

from dataclasses import dataclass

from hansa.model.translation.federation.endpoints import PodNetwork


@dataclass(frozen=True, slots=True)
class AdmiraltySettings:
    """What follows delegates beside ConfigMaps and Secrets, and for how long copies stay unused."""

    follows_claims: bool = False  # PersistentVolumeClaims: each target provisions volumes of its own
    follows_service_accounts: bool = False  # without it, a service account of the name has to be in the target
    # Seconds for which a ConfigMap or Secret stays in a target without a delegate that uses it: the next pod of the
    # same workload often comes there.
    retention: float = 10.0
    # Networks of pods that all clusters reach directly: EndpointSlices lead to delegates in them; none by default.
    pod_networks: tuple[PodNetwork, ...] = ()
    exports_services: bool = False  # the Multi-Cluster Services API is served
