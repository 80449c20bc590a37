"""When certificates end: of API servers, of the kubeconfigs that Hansa uses, and the CA bundles of webhooks. Pure."""

import base64
import binascii
import datetime
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from cryptography import x509

from hansa.app.doctor import finding
from hansa.app.doctor.finding import Finding
from hansa.app.doctor.visiting import Role, Visit
from hansa.kube.objects import Object

CHECK: Final = "certificates"
SOON: Final = datetime.timedelta(days=14)
_RENEW: Final = {
    Role.CLUSTER: 'renew it as the cluster\'s distribution describes, such as "kubeadm certs renew all"',
    Role.TENANT: "vc-manager renews certificates in time: check that one is running, and its log",
    Role.SUPER: 'create new credentials with "hansa join {name} --apply"; the server renews its own',
    Role.TARGET: 'create new credentials with "kubemcsa export"; the server renews its own',
}


def examine(visits: Iterable[Visit], webhooks: Iterable[Object], now: datetime.datetime) -> Iterator[Finding]:
    """The findings."""
    ends = [*_of_visits(visits), *_of_webhooks(webhooks)]
    bad = [found for what, end, remedy in ends if (found := judged(what, end, now, remedy=remedy))]
    yield from bad
    if ends and not bad:
        first = min(end for _, end, _ in ends)
        yield finding.fine(CHECK, f"{len(ends)} certificates are valid; the first ends on {first:%F}")


def judged(what: str, end: datetime.datetime, now: datetime.datetime, *, remedy: str) -> Finding | None:
    """A finding about a certificate that has ended or ends soon."""
    if end <= now:
        return finding.problem(CHECK, f"{what} ended on {end:%F %T} UTC", why="TLS connections fail", remedy=remedy)
    if end - now < SOON:
        why = "TLS connections fail from then on"
        return finding.warning(CHECK, f"{what} ends on {end:%F %T} UTC", why=why, remedy=remedy)
    return None


def _of_visits(visits: Iterable[Visit]) -> Iterator[tuple[str, datetime.datetime, str]]:
    for one in visits:
        remedy = _RENEW[one.role].format(name=one.name)
        if one.serving_ends is not None:
            yield f"{one}: the certificate of {one.server}", one.serving_ends, remedy
        if one.client_ends is not None:
            yield f"{one}: the client certificate of the kubeconfig", one.client_ends, remedy


def _of_webhooks(webhooks: Iterable[Object]) -> Iterator[tuple[str, datetime.datetime, str]]:
    for configuration in webhooks:
        for one in configuration.get("webhooks") or ():
            for end in ca_ends(one.get("clientConfig") or {}):
                what = f"{configuration.kind} {configuration.name}: the CA in caBundle of {one.get('name')}"
                yield what, end, "restart the webhook, which writes a new one; see --help of hansa webhook"


def ca_ends(config: Mapping[str, Any]) -> list[datetime.datetime]:
    """When the certificates of a caBundle end; none if it has none that can be read."""
    try:
        bundle = base64.b64decode(config.get("caBundle") or "")
        return [one.not_valid_after_utc for one in x509.load_pem_x509_certificates(bundle)] if bundle else []
    except (ValueError, binascii.Error):
        return []
