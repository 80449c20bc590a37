"""Counters of CPU that scrapers compute rates from."""

import pytest

from hansa.kubelet.usage.meter import LEAST, Meter
from hansa.kubelet.usage.readings import Container, Reading

A, B = Container("shop", "uid-1", "app"), Container("shop", "uid-2", "app")


def test_rates_of_the_metrics_api_are_summed_up():
    meter = Meter()
    for time in (0.0, 15.0, 15.0, 30.0):  # the same reading is often read twice
        meter.update({A: Reading(time, 100.0, cores=0.5)})
    usage = meter.containers[A]
    assert (usage.cores, usage.memory, usage.time) == (0.5, 100.0, 30.0)
    assert usage.core_seconds == meter.node.core_seconds == pytest.approx(LEAST + 15.0)


def test_counters_of_kubelets_are_passed_on_with_their_rate():
    meter = Meter()
    meter.update({A: Reading(0.0, 1.0, core_seconds=100.0)})
    meter.update({A: Reading(10.0, 1.0, core_seconds=105.0)})
    assert (meter.containers[A].core_seconds, meter.containers[A].cores) == (105.0, 0.5)
    meter.update({A: Reading(20.0, 1.0, core_seconds=1.0)})  # the container was restarted
    assert (meter.containers[A].core_seconds, meter.containers[A].cores) == (106.0, 0.1)


def test_a_counter_does_not_jump_when_its_source_changes():
    meter, totals = Meter(), []
    for reading in (
        Reading(0.0, 1.0, core_seconds=500.0),
        Reading(10.0, 1.0, cores=0.5),
        Reading(20.0, 1.0, core_seconds=510.0),
        Reading(30.0, 1.0, core_seconds=511.0),
    ):
        meter.update({A: reading})
        totals.append(meter.containers[A].core_seconds)
    assert totals == [500.0, 505.0, 505.0, 506.0]


def test_the_counter_of_the_node_never_decreases_and_does_not_jump():
    meter = Meter()
    totals = []
    for readings in (
        {A: Reading(0.0, 1.0, core_seconds=1000.0)},
        {A: Reading(10.0, 1.0, core_seconds=1002.0), B: Reading(10.0, 2.0, core_seconds=5000.0)},
        {B: Reading(20.0, 2.0, core_seconds=5001.0)},
        {},
        {B: Reading(40.0, 2.0, core_seconds=5009.0)},
    ):
        meter.update(readings)
        totals.append(meter.node.core_seconds - LEAST)
    assert totals == pytest.approx([0.0, 2.0, 3.0, 3.0, 3.0])
    assert meter.node.memory == 2.0
