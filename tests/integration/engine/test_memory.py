"""The syncer's memory does not depend on how many objects came and went."""

import dataclasses

import engine_lab as lab
import retained
from eventually import eventually
from hansa.kube import resources
from hansa.model.references import Missing, Reference

PODS, MAPS = resources.PODS, resources.CONFIG_MAPS
RULE = lab.SMALL.rules[PODS]
ROUND = 20  # pods


def _optional(pod):
    return [Reference(MAPS, one.namespace, one.name, True, missing=Missing.PLACEHOLDER) for one in RULE.references(pod)]


OPTIONAL = dataclasses.replace(
    lab.SMALL, rules={**lab.SMALL.rules, PODS: dataclasses.replace(RULE, references=_optional)}
)


async def test_rounds_of_pods_that_name_a_missing_optional_config_map_leave_nothing(start_engine, clients, see, home):
    async with start_engine(mode=OPTIONAL) as engine:

        async def live(number):
            names = [f"p{number}-{one}" for one in range(ROUND)]
            for name in names:
                await clients["up"].create(PODS, lab.pod(name, "vn1", namespace=home, config_map="settings"))
            for name in names:
                await eventually(see["up"].has(PODS, name, home, lambda pod: pod.status.get("phase") == "Running"))
            for name in names:
                await clients["up"].delete(PODS, name, namespace=home, grace=0)
            for name in names:
                await eventually(see["low1"].lacks(PODS, name, home))
            await eventually(see["low1"].lacks(MAPS, "settings", home))

        await live(0)
        before = retained.entries(engine.syncer)
        for number in range(1, 4):
            await live(number)

        async def look():
            grown = retained.growth(before, retained.entries(engine.syncer))
            # A list of the watch may be in progress; a pod of an earlier round is more than one entry.
            assert sum(grown.values()) < ROUND, grown
            return True

        await eventually(look)
