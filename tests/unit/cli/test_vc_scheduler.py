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
