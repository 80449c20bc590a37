"""API requests of a pod, counted in the audit logs of the API servers."""

import asyncio
import json

from eventually import eventually
from league import deployment

WRITES = {"create", "update", "patch", "delete", "deletecollection"}
PODS = 30


async def test_after_the_caches_are_warm_nothing_is_listed_or_read_and_a_pod_takes_six_writes(league, upper_namespace):
    kube = league.upper.kubectl
    members = [league.upper, *league.lowers.values()]
    warm = deployment("warm", 2)
    await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(warm))
    await kube("-n", upper_namespace, "rollout", "status", "deployment/warm", "--timeout", "120s")
    before = {member.name: len(await flushed(member)) for member in members}
    await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(deployment("web", PODS)))
    await kube("-n", upper_namespace, "rollout", "status", "deployment/web", "--timeout", "120s")
    await kube("-n", upper_namespace, "delete", "deployment", "web")

    async def all_gone():
        return not [
            one for member in members for one in await member.all("pods", namespace=upper_namespace, labels="app=web")
        ]

    await eventually(all_gone)
    # What other tests left behind is still going, so only lists are looked at everywhere.
    everywhere = [one for member in members for one in (await flushed(member))[before[member.name] :]]
    requests = [one for one in everywhere if one.get("objectRef", {}).get("namespace") == upper_namespace]
    assert [one["requestURI"] for one in everywhere if one["verb"] == "list"] == []
    assert [one["requestURI"] for one in requests if one["verb"] == "get"] == []
    writes = [one for one in requests if one["verb"] in WRITES]
    assert len(writes) / PODS <= 6, summary(writes)
    refused = [one for one in writes if one["responseStatus"]["code"] >= 400]
    assert len(refused) <= PODS * 0.05, summary(refused)


async def flushed(member):
    """The requests so far; the log is written a moment after they are answered."""
    last = -1
    while last != (count := len(member.requests())):
        last = count
        await asyncio.sleep(0.5)
    return member.requests()


def summary(requests):
    counts = {}
    for one in requests:
        ref = one["objectRef"]
        what = f"{one['verb']} {ref['resource']}/{ref.get('subresource', '')} {one['responseStatus']['code']}"
        counts[what] = counts.get(what, 0) + 1
    return counts
