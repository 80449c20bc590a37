"""Whether the webhook configurations of Hansa point to something that answers."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hansa.admission import configuration
from hansa.app.doctor import certificates, finding
from hansa.app.doctor.finding import Finding
from hansa.app.status.reading import Reader
from hansa.kube import errors, peer, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.modes import admiralty_admission

CHECK: Final = "webhooks"
NAMES: Final = frozenset({configuration.DEFAULT_NAME, admiralty_admission.CONFIGURATION_NAME})
DOMAINS: Final = (".hansa.dev", ".admiralty.io")
WHY: Final = {
    "Fail": "the API server refuses all pods that the webhook selects",
    "Ignore": "pods are created without the changes that they need to be placed in other clusters",
}


async def read(reader: Reader) -> list[Object]:
    """The webhook configurations of Hansa."""
    found = (await reader.list(configuration.RESOURCE)).items
    typed = (Object.of({**one.to_dict(), "kind": configuration.RESOURCE.kind}) for one in found)
    return [one for one in typed if is_ours(one)]


def is_ours(one: Object) -> bool:
    """Whether a configuration is ours, by its name or those of its webhooks."""
    named = (str(hook.get("name", "")) for hook in one.get("webhooks") or ())
    return one.name in NAMES or any(name.endswith(DOMAINS) for name in named)


async def examine(configurations: list[Object], reader: Reader) -> list[Finding]:
    """The findings about all configurations."""
    found: list[Finding] = []
    for one in configurations:
        for hook in one.get("webhooks") or ():
            found += [*_bundle(one, hook), await _endpoint(one, hook, reader)]
    return found


def _bundle(one: Object, hook: Mapping[str, Any]) -> Iterator[Finding]:
    if not certificates.ca_ends(hook.get("clientConfig") or {}):
        yield finding.problem(
            CHECK,
            f"{one.kind} {one.name}: caBundle of {hook.get('name')} has no certificate",
            why=f"the API server does not trust the webhook, so that {_why(hook)}",
            remedy="restart the webhook without --no-install, or let cert-manager inject the CA",
        )


async def _endpoint(one: Object, hook: Mapping[str, Any], reader: Reader) -> Finding:
    named = f"{one.kind} {one.name}"
    config = hook.get("clientConfig") or {}
    if service := config.get("service"):
        return await _service(
            named, hook, NamespacedName(service.get("namespace", ""), service.get("name", "")), reader
        )
    url = str(config.get("url", ""))
    try:
        await peer.certificate_end(url, deadline=reader.deadline)
    except errors.Unreachable as error:
        return finding.warning(
            CHECK,
            f"{named} points to {url}: {error}",
            why=f"if the API server cannot reach it either, {_why(hook)}",
            remedy=f"start the webhook at this address, or delete the configuration: {_deletion(named)}",
        )
    return finding.fine(CHECK, f"{named} points to {url}, which answers")


async def _service(named: str, hook: Mapping[str, Any], key: NamespacedName, reader: Reader) -> Finding:
    remedy = f"start the webhook, or delete its configuration: {_deletion(named)}"
    if await reader.find(resources.SERVICES, key.name, namespace=key.namespace) is None:
        what = f"{named} points to Service {key}, which does not exist"
        return finding.problem(CHECK, what, why=_why(hook), remedy=remedy)
    if not (ready := await ready_endpoints(reader, key)):
        what = f"{named} points to Service {key}, which has no ready endpoint"
        return finding.problem(CHECK, what, why=_why(hook), remedy=remedy)
    return finding.fine(CHECK, f"{named} points to Service {key} with {ready} ready endpoints")


def _deletion(named: str) -> str:
    return f'"kubectl delete {named.replace(" ", "/", 1)}"'


def _why(hook: Mapping[str, Any]) -> str:
    return WHY.get(str(hook.get("failurePolicy", "Fail")), WHY["Fail"])


async def ready_endpoints(reader: Reader, service: NamespacedName) -> int:
    """The number of ready endpoints of a Service."""
    labels = f"kubernetes.io/service-name={service.name}"
    slices = await reader.list(resources.ENDPOINT_SLICES, namespace=service.namespace, labels=labels)
    endpoints = [one for found in slices.items for one in found.get("endpoints") or ()]
    return sum((one.get("conditions") or {}).get("ready") is not False for one in endpoints)
