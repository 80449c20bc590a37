"""Pairs while the credentials for a lower cluster may not read a kind."""

import engine_lab as lab
from hansa.model import plan
from hansa.model.pair import Unknown
from view_world import MAP, MAPS, POD, PODS


def test_a_resource_that_may_not_be_read_concerns_that_resource_alone(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("q", "vn", config_map="settings"))
        maps = world.lower.stores[MAPS]
        maps.freshness.interrupt("may not list configmaps", is_forbidden=True)
        maps.freshness._interrupted_at = -1000.0  # longer ago than the patience of the cache
        world.lower.refresh()
        assert isinstance(world.decide(POD)[1][0], plan.Create)
        pair, [action] = world.decide(MAP)
        assert pair.lowers["low"] == Unknown("may not list configmaps")
        assert isinstance(action, plan.Wait)
        needs = POD._replace(name="q")
        assert world.decide(needs)[1] == (plan.Refuse("low", MAY_NOT_READ),)
        maps.freshness.resume()
        world.lower.refresh()
        world.woken.clear()
        world.wakeups.notify("low")
        assert world.woken == [MAP, needs]
        assert world.decide(needs)[1] == (plan.Wait("waiting for ConfigMap default/settings in low"),)

    play(scene)


MAY_NOT_READ = (
    "ConfigMap default/settings cannot be synced to low: the credentials for low may not read configmaps (403); "
    "grant them get, list, watch, create, patch and delete of configmaps there"
)


def test_a_pod_whose_own_kind_may_not_be_read_is_refused_with_the_missing_right(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        world.lower.stores[PODS].freshness.interrupt("may not list pods", is_forbidden=True)
        world.lower.stores[PODS].freshness._interrupted_at = -1000.0
        world.lower.refresh()
        wait, refusal = world.decide(POD)[1]
        assert isinstance(wait, plan.Wait)
        assert refusal.message.startswith("Pod default/p cannot be synced to low: ")
        world.lower.cluster.health.error = "low does not answer"
        world.lower.refresh()
        assert [type(one) for one in world.decide(POD)[1]] == [plan.Wait]

    play(scene)
