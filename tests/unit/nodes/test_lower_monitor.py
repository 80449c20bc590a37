"""From the caches of a lower cluster to state, on simulated time."""

import simulation
from hansa.control import store
from hansa.kube import watching
from hansa.kube.errors import Unreachable
from hansa.model import capacity, stamp
from hansa.nodes.lower_monitor import LowerMonitor
from hansa.nodes.settings import NodeSettings
from hansa.runtime import listeners
from lower_things import node, pod


class Lower:
    """The caches and the health of a lower cluster."""

    def __init__(self, world):
        self.nodes, self.pods = (
            store.Store(name, clock=world.clock, metrics=world.metrics) for name in ("nodes", "pods")
        )
        self.version, self.error = "v1.35.8", ""
        self.listeners = listeners.Listeners()
        self.versions = iter(range(1, 1000))

    def listen(self, notify):
        return self.listeners.add(notify)

    def becomes(self, error):
        self.error = error
        for notify in self.listeners:
            notify()

    def listed(self, *things):
        for cache, kind in ((self.nodes, "Node"), (self.pods, "Pod")):
            cache.apply(watching.Restarted())
            for thing in things:
                if thing.kind == kind:
                    cache.apply(watching.Added(self.versioned(thing)))
            cache.apply(watching.Synced(str(next(self.versions))))

    def versioned(self, thing):
        return thing.with_metadata(uid=thing.name, resource_version=str(next(self.versions)))

    def has(self, thing):
        cache = self.nodes if thing.kind == "Node" else self.pods
        cache.apply(watching.Modified(self.versioned(thing)))


class Followed:
    """A monitor and how often it reported a change."""

    def __init__(self, world):
        self.lower, self.changes = Lower(world), 0
        settings = NodeSettings("vn1", "hamburg")
        self.monitor = LowerMonitor(
            settings, self.lower, upper_id="up", changed=self.changed, clock=world.clock, patience=10.0
        )

    def changed(self):
        self.changes += 1

    @property
    def state(self):
        return self.monitor.state()

    @property
    def cpu(self):
        return capacity.resource_list(self.state.totals.allocatable)["cpu"]


def test_there_are_no_facts_until_the_first_lists_have_come():
    async def main(world):
        followed = Followed(world)
        followed.lower.becomes("it has not answered yet")
        assert followed.state is None
        followed.lower.becomes("")
        assert followed.state is None
        followed.lower.listed(node(cpu="8"), pod())
        assert followed.cpu == "7"
        assert followed.state.problem is None

    simulation.run(main)


def test_the_version_is_awaited_too_but_not_for_ever():
    async def main(world):
        followed = Followed(world)
        followed.lower.version = ""
        followed.lower.listed(node(cpu="8"))
        assert followed.state is None
        await world.clock.sleep(10.0)
        assert followed.cpu == "8"
        assert followed.state.problem is None

    simulation.run(main)


def test_missing_first_lists_are_a_problem_after_a_while():
    async def main(world):
        followed = Followed(world)
        followed.lower.pods.apply(watching.Interrupted(Unreachable("pods is forbidden"), 1.0))
        followed.lower.nodes.apply(watching.Restarted())
        followed.lower.nodes.apply(watching.Synced("1"))
        await world.clock.sleep(10.0)
        assert followed.state.problem.reason == "LowerClusterUnlisted"
        assert followed.state.problem.message == "cannot watch pods: pods is forbidden"

    simulation.run(main)


def test_a_cluster_that_never_answered_is_a_problem_after_a_while():
    async def main(world):
        followed = Followed(world)
        followed.lower.becomes("connection refused")
        await world.clock.sleep(9.9)
        assert followed.state is None
        await world.clock.sleep(0.1)
        assert followed.state.problem.reason == "LowerClusterUnreachable"

    simulation.run(main)


def test_a_problem_after_the_first_list_is_reported_at_once_and_cleared_on_recovery():
    async def main(world):
        followed = Followed(world)
        followed.lower.listed(node(cpu="8"))
        before = followed.changes
        followed.lower.becomes("no answer in 3 s")
        assert followed.changes == before + 1
        assert followed.state.problem.message == "no answer in 3 s"
        assert followed.cpu == "8"
        followed.lower.becomes("")
        assert followed.state.problem is None

    simulation.run(main)


def test_copies_of_this_upper_cluster_are_not_counted_and_those_of_others_are():
    async def main(world):
        followed = Followed(world)
        copies = [
            stamp.put(pod(name), stamp.Origin(upper, "1", "default", name))
            for name, upper in (("a", "up"), ("b", "another"))
        ]
        followed.lower.listed(node(cpu="8"), *copies)
        assert followed.cpu == "7"

    simulation.run(main)


def test_only_changes_that_are_felt_wake_the_node():
    async def main(world):
        followed = Followed(world)
        followed.lower.listed(node(cpu="8"), pod("p"))
        before = followed.changes
        followed.lower.has(pod("p", status={"podIP": "10.0.0.1"}))
        followed.lower.has(node(cpu="8", labels={"team": "blue"}))
        followed.lower.has(pod("q", on="", phase="Pending"))
        assert followed.changes == before
        followed.lower.has(pod("q"))
        assert followed.changes == before + 1
        assert followed.cpu == "6"

    simulation.run(main)


def test_the_facts_are_the_same_after_a_restart():
    async def main(world):
        things = [node("n1", cpu="8"), node("n2", cordoned=True), pod("p"), pod("q", on="n2")]
        first, second = Followed(world), Followed(world)
        first.lower.listed(node("n9"))
        for thing in (pod("x", on="n9"), *things):
            first.lower.has(thing)
        first.lower.listed(*things)
        second.lower.listed(*things)
        assert first.state == second.state

    simulation.run(main)


def test_a_closed_monitor_reports_nothing():
    async def main(world):
        followed = Followed(world)
        followed.monitor.close()
        followed.lower.listed(node())
        followed.lower.becomes("away")
        assert followed.changes == 0

    simulation.run(main)
