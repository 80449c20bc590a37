"""The policy of the descheduler: a DeschedulerPolicy of descheduler/v1alpha2, or tensile-kube's v1alpha1. Pure."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

import msgspec
import yaml

from hansa.kube.language import selectors
from hansa.runtime import errors

PLUGIN: Final = "RemovePodsUnschedulableBelow"
_CRITICAL: Final = 2_000_000_000  # the priority of system-cluster-critical


class InvalidPolicy(errors.HansaError):
    """The policy has a field or value that is not supported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """When a pod is moved, which pods are never moved, and how many at most in a round."""

    pending_seconds: float = 30.0  # a pod is moved when its cluster could not schedule it for so long
    freeze_seconds: float = 300.0  # new pods of its owner avoid the cluster for so long
    oldest_pending_seconds: float = 0.0  # a pod that is pending for longer is moved, whatever the reason; 0: never
    included: frozenset[str] = frozenset()  # namespaces; none: all
    excluded: frozenset[str] = frozenset({"kube-system"})
    selector: selectors.Selector = field(default_factory=lambda: selectors.Selector(()))
    priority_below: int = _CRITICAL
    most_per_node: int = 0  # in a round; 0: no limit
    most_per_namespace: int = 0
    most: int = 0
    moves_pods_with_claims: bool = False


_Seconds = Annotated[float, msgspec.Meta(ge=0, le=366 * 86_400)]
_Most = Annotated[int, msgspec.Meta(ge=0)]


class _Struct(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    pass


class _Namespaces(_Struct, frozen=True):
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ("kube-system",)


class _Threshold(_Struct, frozen=True):
    value: int = _CRITICAL


class _Arguments(_Struct, frozen=True):
    min_pending_seconds: _Seconds = 30.0
    freeze_seconds: _Seconds = 300.0
    max_pod_life_time_seconds: _Seconds = 0.0
    namespaces: _Namespaces = _Namespaces()
    label_selector: dict[str, Any] | None = None
    priority_threshold: _Threshold = _Threshold()
    moves_pods_with_claims: bool = msgspec.field(default=False, name="movePodsWithPVC")


class _PluginConfig(_Struct, frozen=True):
    name: str
    args: _Arguments = _Arguments()


class _Enabled(_Struct, frozen=True):
    enabled: tuple[str, ...] = ()


class _Plugins(_Struct, frozen=True):
    deschedule: _Enabled = _Enabled()


class _Profile(_Struct, frozen=True):
    name: str = ""
    plugin_config: tuple[_PluginConfig, ...] = ()
    plugins: _Plugins = _Plugins()


class _V2(_Struct, frozen=True):
    api_version: str
    kind: Literal["DeschedulerPolicy"]
    profiles: tuple[_Profile, ...] = ()
    most_per_node: _Most = msgspec.field(default=0, name="maxNoOfPodsToEvictPerNode")
    most_per_namespace: _Most = msgspec.field(default=0, name="maxNoOfPodsToEvictPerNamespace")
    most: _Most = msgspec.field(default=0, name="maxNoOfPodsToEvictTotal")


class _Strategy(msgspec.Struct, frozen=True):
    enabled: bool = False
    params: dict[str, Any] = {}


class _V1(msgspec.Struct, frozen=True):
    strategies: dict[str, _Strategy] = {}


def parse(text: str, origin: str) -> Policy:
    """Parse a file; `origin` is its name in messages."""
    try:
        described = yaml.safe_load(text)
        version = described.get("apiVersion") if isinstance(described, dict) else None
        match version:
            case "descheduler/v1alpha2":
                return _second(msgspec.convert(described, _V2, strict=True), origin)
            case "descheduler/v1alpha1":
                return _first(msgspec.convert(described, _V1), origin)
    except yaml.YAMLError as error:
        raise InvalidPolicy(f"{origin} is not YAML: {getattr(error, 'problem', error)}") from None
    except (msgspec.ValidationError, selectors.SelectorError) as error:
        raise InvalidPolicy(f"{origin}: {error}") from None
    except RecursionError:
        raise InvalidPolicy(f"{origin} is nested too deeply, or refers to itself") from None
    raise InvalidPolicy(f'{origin}: apiVersion is "{version}"; use descheduler/v1alpha2 or descheduler/v1alpha1')


def _second(file: _V2, origin: str) -> Policy:
    enabled = {name for profile in file.profiles for name in profile.plugins.deschedule.enabled}
    if unknown := sorted(enabled - {PLUGIN}):
        raise InvalidPolicy(f'{origin}: plugin "{unknown[0]}" is not supported; use {PLUGIN}')
    if not enabled:
        raise InvalidPolicy(f"{origin}: no profile enables a plugin; add {PLUGIN} to plugins.deschedule.enabled")
    configs = [one for profile in file.profiles for one in profile.plugin_config]
    if unknown := sorted({one.name for one in configs} - {PLUGIN}):
        raise InvalidPolicy(f'{origin}: pluginConfig "{unknown[0]}" is not supported; use {PLUGIN}')
    if len(configs) > 1:
        raise InvalidPolicy(f"{origin}: pluginConfig has {PLUGIN} {len(configs)} times; all its profiles are one here")
    args = configs[0].args if configs else _Arguments()
    return Policy(
        pending_seconds=args.min_pending_seconds,
        freeze_seconds=args.freeze_seconds,
        oldest_pending_seconds=args.max_pod_life_time_seconds,
        included=frozenset(args.namespaces.include),
        excluded=frozenset(args.namespaces.exclude),
        selector=selectors.of_object({} if args.label_selector is None else args.label_selector),
        priority_below=args.priority_threshold.value,
        most_per_node=file.most_per_node,
        most_per_namespace=file.most_per_namespace,
        most=file.most,
        moves_pods_with_claims=args.moves_pods_with_claims,
    )


def _first(file: _V1, origin: str) -> Policy:
    """tensile-kube's policy: of its strategies, only PodLifeTime exists there."""
    enabled = {name: one for name, one in file.strategies.items() if one.enabled}
    if unknown := sorted(enabled.keys() - {"PodLifeTime"}):
        raise InvalidPolicy(
            f'{origin}: strategy "{unknown[0]}" is not supported; use PodLifeTime, or {PLUGIN} of v1alpha2'
        )
    if not enabled:
        raise InvalidPolicy(f"{origin}: no strategy is enabled; enable PodLifeTime")
    seconds = enabled["PodLifeTime"].params.get("maxPodLifeTimeSeconds", 0)
    if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds < 0:
        raise InvalidPolicy(f'{origin}: maxPodLifeTimeSeconds is "{seconds}", but must be a number of seconds')
    return Policy(pending_seconds=0.0, oldest_pending_seconds=float(seconds))
