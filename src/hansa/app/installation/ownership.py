"""The owner of an object that an installation would change: itself, another one, or none. Pure."""

from collections.abc import Collection
from typing import Final

from hansa.app.installation.rendering import Installation, named
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.runtime.errors import HansaError

RELEASE: Final = "meta.helm.sh/release-name"
RELEASE_NAMESPACE: Final = "meta.helm.sh/release-namespace"
SHARED: Final = frozenset({"Namespace", "CustomResourceDefinition"})  # others may have created them before


class Refused(HansaError):
    """An object belongs to others."""


def release(found: Object) -> tuple[str, str] | None:
    """Namespace and name of the Helm release that an object belongs to."""
    name = found.annotations.get(RELEASE)
    return (found.annotations.get(RELEASE_NAMESPACE, ""), name) if name else None


def check(installation: Installation, found: Object, releases: Collection[tuple[str, str]]) -> None:
    """Refuse an object of others. `releases` are the Helm releases that exist: what a former one left has no owner."""
    helm = release(found)
    if helm is not None and helm in releases:
        raise Refused(
            f'{named(found)} belongs to the Helm release {helm[1]} in namespace {helm[0]}: use "helm upgrade", or'
            f' "helm uninstall {helm[1]} -n {helm[0]}" first'
        )
    if is_ours(installation, found) or found.kind in SHARED:
        return
    other = found.annotations.get(keys.INSTALLATION, "")
    if other:
        namespace, _, mode = other.partition("/")
        raise Refused(
            f"{named(found)} belongs to the installation of mode {mode} in namespace {namespace}: run"
            f' "hansa uninstall --mode {mode} --namespace {namespace}" first'
        )
    raise Refused(
        f"{named(found)} exists and was not created by hansa install: delete or rename it, if it is not needed"
    )


def is_ours(installation: Installation, found: Object) -> bool:
    """Whether this installation created an object."""
    return found.labels.get(keys.INSTALLED) == str(installation.mode) and found.annotations.get(
        keys.INSTALLATION
    ) == str(installation)
