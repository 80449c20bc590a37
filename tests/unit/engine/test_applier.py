"""The applier without a server: writes that are skipped, and writes that do not wait for others."""

import asyncio
import math
import types
import typing
from dataclasses import replace

import pytest

import engine_lab as lab
import simulation
from hansa.engine import fanout, write_gate
from hansa.engine.applier import VERBS, Applier, Foreign, Full, Refused, RetryLater, Stale, Verb
from hansa.engine.inflight import InflightRequests
from hansa.kube import errors, resources
from hansa.model import plan
from hansa.model.pair import Key, Pair

MAPS = resources.CONFIG_MAPS
KEY = Key("up", MAPS, "default", "settings")


class Silent:
    """A client of a server that never answers; `written` counts what was sent."""

    def __init__(self):
        self.written = 0

    async def create(self, *_, **__):
        self.written += 1
        await asyncio.get_running_loop().create_future()


class Quick(Silent):
    """A client of a server that answers at once."""

    async def create(self, _resource, obj, **_):
        self.written += 1
        return obj


def side(name, client):
    health = types.SimpleNamespace(listen=lambda _: None, trust=lambda: None, suspect=lambda: None, error="")
    cluster = types.SimpleNamespace(name=name, client=client, inflight=InflightRequests(health))
    return types.SimpleNamespace(cluster=cluster, stores={MAPS: types.SimpleNamespace(observe=lambda _: None)})


def scene(act, *, may_write=lambda: True, mode=lab.SMALL, replaced=lambda *_: None, most=math.inf, **clients):
    async def main(world):
        sides = {name: side(name, client) for name, client in clients.items()}
        clusters = types.SimpleNamespace(side=sides.__getitem__, upper_id="id", copies_to_delete=lambda *_: ())
        usage, woken = types.SimpleNamespace(most_requests=lambda _: most), []
        view = types.SimpleNamespace(clusters=clusters, in_flight=set(), mode=mode, usage=usage, name="up", woken=woken)
        applier = Applier(
            metrics=world.metrics,
            gate=write_gate.Leading(may_write),
            ended=lambda *_: None,
            replaced=replaced,
            wake=woken.append,
            clock=world.clock,
        )
        todo = plan.Plan(tuple(plan.Create(name, lab.config_map("settings"), plan.Reason.PLACED) for name in clients))
        pair = Pair(KEY, lab.config_map("settings"), lowers=dict.fromkeys(clients))
        await act(applier, todo, pair, view)
        await applier.close()
        return [line for line in world.metrics.text().splitlines() if line.startswith("hansa_writes_total{")]

    return simulation.run(main)


def test_a_server_that_is_silent_holds_up_no_other():
    silent, quick = Silent(), Quick()

    async def act(applier, todo, pair, view):
        assert await applier.apply(todo, pair, view) == []
        assert asyncio.get_running_loop().time() <= fanout.PATIENCE
        assert (silent.written, quick.written) == (1, 1)
        assert view.in_flight == {(KEY, "a")}

    scene(act, a=silent, b=quick)


def test_a_process_that_is_no_longer_the_leader_writes_nothing():
    quick, answers = Quick(), iter([True, False])

    async def act(applier, todo, pair, view):
        [problem] = await applier.apply(todo, pair, view)
        assert problem == RetryLater("b", "another process may write now")
        assert quick.written == 1

    scene(act, may_write=lambda: next(answers), a=quick, b=quick)


def test_a_write_beyond_the_requests_in_flight_of_its_upper_cluster_waits_for_one_that_ends():
    silent, quick = Silent(), Quick()

    async def act(applier, todo, pair, view):
        writes = [applier.apply(todo, replace(pair, key=KEY._replace(name=str(number))), view) for number in range(3)]
        problems = await asyncio.gather(*writes)
        assert problems == [[], [], [Full("a", "the tenant's limit of requests in flight is reached")]]
        assert (silent.written, quick.written) == (2, 3), "the third waits for the silent server only"
        assert view.woken == []
        await applier.close()
        assert view.woken == [KEY._replace(name="2")]

    scene(act, most=2, a=silent, b=quick)


def test_a_foreign_object_is_reported_and_nothing_is_written():
    quick = Quick()

    async def act(applier, _todo, pair, view):
        taken = plan.Plan((plan.Conflict("a", lab.config_map("settings"), "it is not ours"),))
        assert await applier.apply(taken, pair, view) == [Foreign("a", "it is not ours")]
        assert quick.written == 0

    scene(act, a=quick)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.Throttled, RetryLater),
        (errors.Unreachable, RetryLater),
        (errors.Unauthorized, RetryLater),
        (errors.Conflict, Stale),
        (errors.Forbidden, Refused),
        (errors.Invalid, Refused),
    ],
)
def test_answers_are_sorted_by_what_is_to_be_done_next(error, kind):
    class Refusing(Quick):
        async def create(self, *_, **__):
            raise error("no")

    async def act(applier, todo, pair, view):
        [problem] = await applier.apply(todo, pair, view)
        assert isinstance(problem, kind)
        assert (problem.cluster, problem.message) == ("a", "no")

    scene(act, a=Refusing())


def test_writes_are_counted_by_verb_reason_and_answer():
    class Refusing(Quick):
        async def create(self, *_, **__):
            raise errors.Forbidden("no")

    async def act(applier, todo, pair, view):
        await applier.apply(todo, pair, view)

    labels = 'reason="placed",resource="configmaps",verb="create"'
    assert scene(act, a=Quick(), b=Refusing()) == [
        f'hansa_writes_total{{answer="ok",cluster="a",{labels}}} 1.0',
        f'hansa_writes_total{{answer="denied",cluster="b",{labels}}} 1.0',
    ]


def test_every_write_has_a_verb():
    assert set(VERBS) == set(typing.get_args(plan.Write))
    assert set(VERBS.values()) == set(Verb)


class Choosy(Quick):
    """A client of a server that refuses a field of the spec, so often."""

    def __init__(self, field, times=math.inf):
        super().__init__()
        self.field, self.times = field, times

    async def create(self, resource, obj, **_):
        if self.field in obj.spec and self.times > 0:
            self.times -= 1
            raise errors.Invalid(f"{self.field} is taken", causes=(errors.Cause(field=f"spec.{self.field}"),))
        return await super().create(resource, obj)


def yielding(spec, refused, _going):
    other = {name: value for name, value in spec.items() if f"spec.{name}" not in refused or name == "needed"}
    return other if other != spec else None


@pytest.mark.parametrize(("field", "is_made"), [("wished", True), ("needed", False)])
def test_a_refused_object_is_created_in_the_fallback_form_of_its_rule_and_reported(field, is_made):
    choosy, reported = Choosy(field), []

    async def act(applier, _todo, pair, view):
        obj = lab.config_map("settings").with_fields(spec={"wished": 1, "needed": 2})
        problems = await applier.apply(plan.Plan((plan.Create("a", obj, plan.Reason.PLACED),)), pair, view)
        assert [type(problem) for problem in problems] == ([] if is_made else [Refused])
        assert choosy.written == int(is_made)
        assert reported == ([(KEY, "a", f"{field} is taken")] if is_made else [])

    rules = {MAPS: replace(lab.SMALL.rules[MAPS], fallback=yielding)}
    scene(act, mode=replace(lab.SMALL, rules=rules), replaced=lambda *what: reported.append(what), a=choosy)


def test_what_is_free_a_moment_later_is_not_given_up():
    choosy, reported = Choosy("wished", times=1), []

    async def act(applier, _todo, pair, view):
        obj = lab.config_map("settings").with_fields(spec={"wished": 1})
        assert await applier.apply(plan.Plan((plan.Create("a", obj, plan.Reason.PLACED),)), pair, view) == []
        assert (choosy.written, reported) == (1, [])

    rules = {MAPS: replace(lab.SMALL.rules[MAPS], fallback=yielding)}
    scene(act, mode=replace(lab.SMALL, rules=rules), replaced=lambda *what: reported.append(what), a=choosy)
