"""Tokens of the upper API server for pods below."""

import base64
import datetime

import pytest

import engine_lab as lab
from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import clock

PODS, SECRETS, ACCOUNTS = resources.PODS, resources.SECRETS, resources.SERVICE_ACCOUNTS
REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", kind="TokenReview", namespaced=False)


class LaterClock(clock.SystemClock):
    """A clock whose date is later by some seconds."""

    def __init__(self, seconds):
        self.seconds = datetime.timedelta(seconds=seconds)

    def wall(self):
        return super().wall() + self.seconds


@pytest.fixture
def tokens(clients, home):
    """A question for `eventually`: the one Secret with a token in the lower cluster, if it is the only one."""

    async def look():
        page = await clients["low1"].list(SECRETS, namespace=home, labels=keys.UPPER)
        return page.items[0] if len(page.items) == 1 else None

    return look


async def reviewed(client, secret):
    """The user of a token by a TokenReview in the upper cluster; empty if it is not valid."""
    token = base64.b64decode(secret.get("data")["token"]).decode()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = await client.create(REVIEWS, Object.of(review))
    return answer.status.get("user", {}).get("username", "")


async def ready(client, home):
    """Wait for the namespace's service account: without it no pod is accepted."""

    async def look():
        try:
            return await client.get(ACCOUNTS, "default", namespace=home)
        except errors.NotFound:
            return None

    return await eventually(look)


async def test_pods_of_one_account_share_a_token_of_the_upper_cluster_which_is_deleted_with_the_last(
    start_engine, clients, see, home, tokens
):
    up = clients["up"]
    await ready(up, home)
    async with start_engine(mode=lab.TOKENED):
        for name in ("one", "two"):
            await up.create(PODS, lab.pod(name, "vn1", namespace=home))
            pod = await eventually(see["low1"].has(PODS, name, home))
        secret = await eventually(tokens)
        assert int(secret.version) < int(pod.version), "it is there before the pod"
        assert await reviewed(up, secret) == f"system:serviceaccount:{home}:default"
        for name in ("one", "two"):
            assert await tokens()
            await up.delete(PODS, name, namespace=home, grace=0)
        await eventually(lambda: _none(tokens))


async def _none(tokens):
    return await tokens() is None


async def test_a_token_is_kept_over_a_restart_and_renewed_before_it_expires(start_engine, clients, see, home, tokens):
    up = clients["up"]
    await ready(up, home)
    async with start_engine(mode=lab.TOKENED):
        await up.create(PODS, lab.pod("one", "vn1", namespace=home))
        await eventually(see["low1"].has(PODS, "one", home))
        first = await eventually(tokens)
    async with start_engine(mode=lab.TOKENED):
        await up.create(PODS, lab.pod("two", "vn1", namespace=home))
        await eventually(see["low1"].has(PODS, "two", home))
        assert (await tokens()).version == first.version, "it is good, so nobody writes it"
    # The API server adds some seconds to an hour's token of a pod; by then four fifths of its life are over.
    async with start_engine(mode=lab.TOKENED, clock=LaterClock(0.9 * 3607)):
        renewed = await eventually(lambda: _other(tokens, first))
        assert renewed.uid == first.uid
        assert await reviewed(up, renewed)


async def _other(tokens, first):
    secret = await tokens()
    return secret if secret is not None and secret.get("data") != first.get("data") else None


async def test_a_new_account_of_the_same_name_has_new_tokens(start_engine, clients, see, home, tokens):
    up = clients["up"]
    await ready(up, home)
    async with start_engine(mode=lab.TOKENED):
        await up.create(PODS, lab.pod("one", "vn1", namespace=home))
        await eventually(see["low1"].has(PODS, "one", home))
        first = await eventually(tokens)
        await up.delete(ACCOUNTS, "default", namespace=home)  # the upper cluster makes it again
        second = await eventually(lambda: _other(tokens, first))
        assert await reviewed(up, first) == ""
        assert await reviewed(up, second)
