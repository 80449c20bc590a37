"""Tokens of the upper API server for pods that run below: Secrets that exist above only in our memory.

Each is asked for once for all pods that want the same, kept fresh, and travels down like any Secret of the upper
cluster. Nothing is stored: after a restart the copies below are taken up again as long as they are good.
"""

import base64
import datetime
import random as randomness
from collections.abc import Callable, Iterable, Iterator

from hansa.control import controller, queue
from hansa.engine.references import Name
from hansa.engine.side import Side
from hansa.kube import errors, resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.model import keys, pair, references
from hansa.model.pair import Unknown
from hansa.model.translation import names
from hansa.runtime import clock, metrics

RENEWAL = 0.8  # of a token's life; what a kubelet does, too
UNSEEN = 1.0  # seconds until we look again for an upper cluster that is away
WORKERS = 4


class Tokens:
    """The tokens of one upper cluster. `made` is told whose token is new, `refused` also why there is none.

    `copies` gives the lower copies of a Secret of ours, or None while nothing can be seen where it is needed.
    """

    def __init__(
        self,
        upper: Side,
        upper_id: str,
        *,
        copies: Callable[[Place], Iterable[Object] | None],
        made: Callable[[Place], None],
        refused: Callable[[Place, str], None],
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._upper, self._upper_id, self._clock = upper, upper_id, clock
        self._copies, self._made, self._refused = copies, made, refused
        self._wanted: dict[Place, references.Token] = {}
        self._of_account: dict[Place, dict[Place, None]] = {}
        self._secrets: dict[Place, Object] = {}
        name = f"tokens of {upper.cluster.name}"
        self._queue: queue.Queue[Place] = queue.Queue(name, clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            name, self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )

    async def run(self) -> None:
        """Keep tokens fresh until cancelled."""
        await self._controller.run()

    def close(self) -> None:
        """Nobody needs tokens any more."""
        self._queue.close()

    def needed_by(self, pod: Object) -> Iterator[Name]:
        """The Secrets with the tokens that a pod wants."""
        for token in references.of_pod(pod).tokens:
            place = Place(token.namespace, names.token_secret(token, upper_id=self._upper_id))
            self._wanted[place] = token
            self._of_account.setdefault(_account(token), {})[place] = None
            yield Name(resources.SECRETS, place)

    def use(self, place: Place, *, is_used: bool) -> None:
        """Somebody needs this Secret now, or nobody does any more. Those that are not tokens of ours are no matter."""
        token = self._wanted.get(place)
        if token is None:
            return
        if is_used:
            self._queue.add(place)
            return
        del self._wanted[place]
        self._secrets.pop(place, None)
        of_account = self._of_account[_account(token)]
        del of_account[place]
        if not of_account:
            del self._of_account[_account(token)]

    def lower_changed(self) -> None:
        """A lower cluster can be seen now, or not any more."""
        for place in self._wanted:
            self._queue.add(place)

    def account_changed(self, account: Place) -> None:
        """A service account came, went, or is another one of that name."""
        for place in self._of_account.get(account, ()):
            self._queue.add(place)

    def side(self, place: Place) -> pair.Side:
        """The upper Secret, as if it were there: unknown until its token has come."""
        if place not in self._wanted:
            return None
        return self._secrets.get(place) or Unknown("its token has not come yet")

    async def _reconcile(self, place: Place) -> controller.Outcome:
        token = self._wanted.get(place)
        if token is None:
            return controller.Done()
        copies = self._copies(place)
        if copies is None:
            return controller.Done()  # who needs it wakes us when it can be seen
        if self._upper.trouble:
            return controller.After(UNSEEN)
        account = self._upper.stores[resources.SERVICE_ACCOUNTS].get(_account(token))
        if account is None:
            return controller.Done()  # it wakes us when it comes
        secret = self._found(place, account.uid, copies)
        if secret is None:
            try:
                secret = await self._request(place, token, account.uid)
            except errors.Unreachable:
                raise
            except errors.ApiError as error:
                self._refused(place, str(error))
                raise
        if self._secrets.get(place) is not secret and place in self._wanted:
            self._secrets[place] = secret
            self._made(place)
        return controller.After((_refresh_at(secret) - self._clock.wall()).total_seconds())

    def _found(self, place: Place, account_uid: str, copies: Iterable[Object]) -> Object | None:
        """A token that we have, or that a copy below has, if it is good for a while."""
        if (held := self._secrets.get(place)) and held.uid == account_uid and _refresh_at(held) > self._clock.wall():
            return held
        for copy in sorted(copies, key=_refresh_at, reverse=True):
            if copy.annotations.get(keys.UPPER_UID) == account_uid and _refresh_at(copy) > self._clock.wall():
                return _secret(place, account_uid, copy.get("data"), _refresh_at(copy))
        return None

    async def _request(self, place: Place, token: references.Token, account_uid: str) -> Object:
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
        life = answer.spec.get("expirationSeconds", token.seconds)  # the server may give a shorter or a longer one
        data = {names.TOKEN_KEY: base64.b64encode(answer.status["token"].encode()).decode()}
        return _secret(place, account_uid, data, began + datetime.timedelta(seconds=RENEWAL * life))


def _account(token: references.Token) -> Place:
    return Place(token.namespace, token.service_account)


def _secret(place: Place, account_uid: str, data: object, refresh_at: datetime.datetime) -> Object:
    """It has the life of the account: a new account of that name has new tokens."""
    refresh = refresh_at.isoformat(timespec="seconds")
    metadata = {
        "namespace": place.namespace,
        "name": place.name,
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
