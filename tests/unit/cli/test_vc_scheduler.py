"""The flags of `hansa vc-scheduler`."""

import argparse

import pytest

from hansa.cli import vc_scheduler
from hansa.runtime.errors import HansaError
from hansa.scheduling.slicing import policies, pool, slices


def read(*flags):
    parser = argparse.ArgumentParser()
    vc_scheduler.add_to(parser.add_subparsers())
    return vc_scheduler.read(parser.parse_args(["vc-scheduler", *flags]))


def test_without_flags_it_spreads_what_fits_and_evicts_nothing():
    settings = read()
    assert settings.placing.policy == policies.Spread()
    assert settings.placing.slice == slices.DEFAULT
    assert (settings.placing.may_be_partial, settings.placing.may_evict) == (True, False)
    assert (settings.headroom, settings.lost_after, settings.is_installed) == (pool.Headroom(), 60.0, True)
    assert (settings.election_namespace, settings.fence_grace) == ("", 30.0)


def test_flags_say_otherwise():
    flags = ("--policy", "pack", "--slice", '{"cpu":"1"}', "--headroom", "10%", "--all-or-nothing", "--evict")
    settings = read(*flags, "--lost-after", "5", "--no-install", "--leader-elect", "--meta-master-kubeconfig", "m")
    assert settings.placing.policy == policies.Pack()
    assert settings.placing.slice == slices.parse('{"cpu":"1"}')
    assert (settings.placing.may_be_partial, settings.placing.may_evict) == (False, True)
    assert (settings.headroom, settings.lost_after, settings.is_installed) == (pool.Headroom(10), 5.0, False)
    assert (settings.election_namespace, str(settings.meta.kubeconfig)) == ("kube-system", "m")


@pytest.mark.parametrize("flags", [("--policy", "best"), ("--slice", "1"), ("--headroom", "much")])
def test_an_invalid_flag_is_reported_in_a_sentence(flags):
    with pytest.raises(HansaError, match="invalid "):
        read(*flags)


def test_the_grace_of_a_fence_is_at_least_what_renewals_and_checks_take():
    assert read("--lost-after", "60", "--fence-grace", "30").fence_grace == 30
    assert read("--lost-after", "600").fence_grace == 300
    sentence = (
        "--fence-grace 30 is too short for --lost-after 600: the fence is renewed every 100 s, and the agent checks it"
        " every 50 s; use at least 300, or a shorter --lost-after"
    )
    with pytest.raises(HansaError, match=sentence):
        read("--lost-after", "600", "--fence-grace", "30")
