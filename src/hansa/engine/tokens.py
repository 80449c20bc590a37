"""Tokens of the upper API server for pods in lower clusters, as Secrets that exist only in memory and as copies.

Each is requested once for all pods that need the same, refreshed, and synced down like any Secret. Nothing is stored:
after a restart, the copies in lower clusters are used again while they are valid.
"""

import base64
import datetime
import random as randomness
from collections.abc import Callable, Iterable, Iterator

from hansa.control import controller, queue
from hansa.engine.caches import ClusterCaches
from hansa.engine.view.topics import ObjectRef
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, pair, references
from hansa.model.pair import Unknown
from hansa.model.translation.common import names
from hansa.runtime import clock, metrics

RENEWAL = 0.8  # of a token's lifetime, as kubelets do
RETRY = 1.0  # seconds until a key is requeued while the upper cluster is unknown
WORKERS = 4


class Tokens:
    """The tokens of one upper cluster. Calls `issued` for a new token, `refused` with the reason when there is none.

    `copies` gives the copies of a Secret, or None while every lower cluster that needs it is unknown.
    """

    def __init__(
        self,
        upper: ClusterCaches,
        upper_id: str,
        *,
        copies: Callable[[NamespacedName], Iterable[Object] | None],
        issued: Callable[[NamespacedName], None],
        refused: Callable[[NamespacedName, str], None],
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._upper, self._upper_id, self._clock = upper, upper_id, clock
        self._copies, self._issued, self._refused = copies, issued, refused
        self._wanted: dict[NamespacedName, references.Token] = {}
        self._of_account: dict[NamespacedName, dict[NamespacedName, None]] = {}
        self._secrets: dict[NamespacedName, Object] = {}
        name = "tokens"  # one for all upper clusters: it labels metrics
        self._queue: queue.Queue[NamespacedName] = queue.Queue(name, clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            name, self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )

    async def run(self) -> None:
        """Issue and refresh tokens until cancelled."""
        await self._controller.run()

    def close(self) -> None:
        """Stop refreshing tokens."""
        self._controller.drain()

    def needed_by(self, pod: Object) -> Iterator[ObjectRef]:
        """The Secrets with the tokens that a pod mounts."""
        for token in references.of_pod(pod).tokens:
            name = NamespacedName(token.namespace, names.token_secret(token, upper_id=self._upper_id))
            self._wanted[name] = token
            self._of_account.setdefault(_account(token), {})[name] = None
            yield ObjectRef(resources.SECRETS, name)

    def use(self, name: NamespacedName, *, is_used: bool) -> None:
        """Objects in lower clusters need this Secret now, or none does. Other Secrets are ignored."""
        token = self._wanted.get(name)
        if token is None:
            return
        if is_used:
            self._queue.add(name)
            return
        del self._wanted[name]
        self._secrets.pop(name, None)
        of_account = self._of_account[_account(token)]
        del of_account[name]
        if not of_account:
            del self._of_account[_account(token)]

    def lower_changed(self) -> None:
        """A lower cluster became known or unknown."""
        for name in self._wanted:
            self._queue.add(name)

    def account_changed(self, account: NamespacedName) -> None:
        """A service account was created, deleted, or created again under the same name."""
        for name in self._of_account.get(account, ()):
            self._queue.add(name)

    def secret(self, name: NamespacedName) -> pair.Side:
        """The Secret as if it existed in the upper cluster: unknown until its token was issued."""
        if name not in self._wanted:
            return None
        return self._secrets.get(name) or Unknown("its token is not issued yet")

    async def _reconcile(self, name: NamespacedName) -> controller.Outcome:
        token = self._wanted.get(name)
        if token is None:
            return controller.Done()
        copies = self._copies(name)
        if copies is None:
            return controller.Done()  # requeued when such a cluster becomes known
        if self._upper.unknown_reason:
            return controller.After(RETRY)
        account = self._upper.stores[resources.SERVICE_ACCOUNTS].get(_account(token))
        if account is None:
            return controller.Done()  # requeued when it is created
        secret = self._found(name, account.uid, copies)
        if secret is None:
            try:
                secret = await self._request(name, token, account.uid)
            except errors.Unreachable:
                raise
            except errors.ApiError as error:
                self._refused(name, str(error))
                raise
        if self._secrets.get(name) is not secret and name in self._wanted:
            self._secrets[name] = secret
            self._issued(name)
        return controller.After((_refresh_at(secret) - self._clock.wall()).total_seconds())

    def _found(self, name: NamespacedName, account_uid: str, copies: Iterable[Object]) -> Object | None:
        """A valid token, from memory or from a copy in a lower cluster."""
        if (held := self._secrets.get(name)) and held.uid == account_uid and _refresh_at(held) > self._clock.wall():
            return held
        for copy in sorted(copies, key=_refresh_at, reverse=True):
            if copy.annotations.get(keys.UPPER_UID) == account_uid and _refresh_at(copy) > self._clock.wall():
                return _secret(name, account_uid, copy.get("data"), _refresh_at(copy))
        return None

    async def _request(self, name: NamespacedName, token: references.Token, account_uid: str) -> Object:
        spec = {"audiences": [token.audience] if token.audience else [], "expirationSeconds": token.seconds}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        began = self._clock.wall()
        answer = await self._upper.cluster.client.call(
            resources.SERVICE_ACCOUNTS,
            token.service_account,
            "token",
            body=Object.of(request),
            namespace=token.namespace,
        )
        life = answer.spec.get("expirationSeconds", token.seconds)  # the server may issue a shorter or a longer one
        data = {names.TOKEN_KEY: base64.b64encode(answer.status["token"].encode()).decode()}
        return _secret(name, account_uid, data, began + datetime.timedelta(seconds=RENEWAL * life))


def _account(token: references.Token) -> NamespacedName:
    return NamespacedName(token.namespace, token.service_account)


def _secret(name: NamespacedName, account_uid: str, data: object, refresh_at: datetime.datetime) -> Object:
    """The Secret, with the uid of the account: a new account of that name gets new tokens."""
    refresh = refresh_at.isoformat(timespec="seconds")
    metadata = {
        "namespace": name.namespace,
        "name": name.name,
        "uid": account_uid,
        "resourceVersion": refresh,
        "annotations": {keys.TOKEN_REFRESH: refresh},
    }
    return Object.of({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data})


def _refresh_at(secret: Object) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(secret.annotations.get(keys.TOKEN_REFRESH, ""))
    except ValueError:
        return datetime.datetime.min.replace(tzinfo=datetime.UTC)
