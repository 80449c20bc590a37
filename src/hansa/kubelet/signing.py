"""A serving certificate from the cluster's own signer for kubelets (kubernetes.io/kubelet-serving), renewed in time.

API servers that have a `--kubelet-certificate-authority` accept no other. Where the signer can't be used, the
certificate is self-made, and the reason is logged.
"""

import base64
import contextlib
import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from hansa.kube import certificates, errors, readiness, resources
from hansa.kube.certificates import KeyPair, Subject
from hansa.kube.client import Client, PatchType
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.runtime import clock
from hansa.runtime.errors import HansaError

log = logging.getLogger(__name__)
SIGNER = "kubernetes.io/kubelet-serving"
SIGN_SECONDS = 30.0  # for the signer; kube-controller-manager takes less than one
RETRY_SECONDS = 600.0  # after which a signer that could not be used is tried again
RENEW_AFTER = 0.7  # of a certificate's lifetime


class SignedCertificate:
    """The certificate of one process; `node` is one of its nodes, `names` are all addresses and host names."""

    def __init__(self, client: Client, *, node: str, names: Iterable[str], clock: clock.Clock) -> None:
        self._client, self._clock = client, clock
        self._subject = Subject(f"system:node:{node}", ("system:nodes",), tuple(sorted(names)))
        self._pair: KeyPair | None = None
        self._renewal = 0.0

    async def read(self) -> KeyPair:
        """The present certificate; a new one if it is due."""
        if self._pair is None or self._clock.now() >= self._renewal:
            try:
                self._take(await self._sign())
            except (errors.ApiError, readiness.NotReady, HansaError) as error:
                self._keep(error)
        assert self._pair is not None  # either branch sets it
        return self._pair

    def _take(self, pair: KeyPair) -> None:
        begin, end = certificates.validity(pair.certificate)
        self._pair = pair
        self._renewal = self._clock.now() + RENEW_AFTER * _seconds(begin, end)

    def _keep(self, error: Exception) -> None:
        text = (
            "kubelet API certificate not signed by the cluster; API servers that verify kubelets refuse the other one"
        )
        log.warning(text, extra={"signer": SIGNER, "error": str(error)})
        self._pair = self._pair or _self_made(self._subject, self._clock.wall())
        self._renewal = self._clock.now() + RETRY_SECONDS

    async def _sign(self) -> KeyPair:
        """Request, approve, wait for, and remove a CertificateSigningRequest."""
        request = certificates.request(self._subject)
        asked = await self._client.create(resources.CERTIFICATE_SIGNING_REQUESTS, _manifest(request.certificate))
        try:
            approval = {"status": {"conditions": [_APPROVED]}}
            await self._client.patch(
                resources.CERTIFICATE_SIGNING_REQUESTS,
                asked.name,
                approval,
                patch_type=PatchType.MERGE,
                subresource="approval",
            )
            await readiness.wait_for_all(
                self._client,
                resources.CERTIFICATE_SIGNING_REQUESTS,
                names={asked.name},
                deadline=SIGN_SECONDS,
                accept=lambda one: bool(_certificate(one)),
            )
            signed = await self._client.get(resources.CERTIFICATE_SIGNING_REQUESTS, asked.name)
        finally:
            with contextlib.suppress(errors.ApiError):  # the controller manager removes old ones, too
                await self._client.delete(resources.CERTIFICATE_SIGNING_REQUESTS, asked.name, uid=asked.uid)
        return KeyPair(base64.b64decode(_certificate(signed)), request.key)


_APPROVED = {"type": "Approved", "status": "True", "reason": "VirtualNode", "message": "serves a virtual node of Hansa"}


def _manifest(request: bytes) -> Object:
    spec: dict[str, Any] = {
        "signerName": SIGNER,
        "request": base64.b64encode(request).decode(),
        "usages": ["digital signature", "server auth"],
    }
    metadata = {"generateName": "hansa-kubelet-", "labels": {keys.MANAGED_BY: "hansa"}}
    return Object.of(
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": metadata,
            "spec": spec,
        }
    )


def _certificate(request: Object) -> str:
    return str(request.status.get("certificate", ""))


def _self_made(subject: Subject, now: datetime) -> KeyPair:
    return certificates.issue(certificates.authority("hansa-kubelet-ca", now), subject, now)


def _seconds(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds()
