import pytest
from prometheus_client import parser

from hansa.runtime import errors, metrics


def samples(registry):
    families = parser.text_string_to_metric_families(registry.text())
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples
    }


def test_the_text_is_what_prometheus_reads():
    registry = metrics.Registry()
    registry.counter("reads_total", "Reads.", labels=["from"]).labels("a").inc()
    registry.gauge("depth", "Depth of\nthe queue.").read(lambda: {(): 2.5})
    seconds = registry.histogram("seconds", "Time.", labels=["op"], bounds=(0.1, 1))
    for value in (0.1, 0.5, 7):
        seconds.labels("get").observe(value)
    assert registry.text().splitlines() == [
        "# HELP reads_total Reads.",
        "# TYPE reads_total counter",
        'reads_total{from="a"} 1.0',
        "# HELP depth Depth of\\nthe queue.",
        "# TYPE depth gauge",
        "depth 2.5",
        "# HELP seconds Time.",
        "# TYPE seconds histogram",
        'seconds_bucket{le="0.1",op="get"} 1.0',
        'seconds_bucket{le="1.0",op="get"} 2.0',
        'seconds_bucket{le="+Inf",op="get"} 3.0',
        'seconds_count{op="get"} 3.0',
        'seconds_sum{op="get"} 7.6',
    ]


def test_label_values_are_escaped():
    registry = metrics.Registry()
    registry.counter("c_total", "C.", labels=["l"]).labels('a"b\\c\nd').inc()
    assert r'c_total{l="a\"b\\c\nd"} 1' in registry.text()
    assert samples(registry) == {("c_total", ("l", 'a"b\\c\nd')): 1}


def test_a_gauge_is_computed_when_it_is_scraped():
    registry = metrics.Registry()
    items = [1, 2]
    end = registry.gauge("items", "Items.", labels=["of"]).read(lambda: {("x",): len(items)})
    assert 'items{of="x"} 2' in registry.text()
    items.append(3)
    assert 'items{of="x"} 3' in registry.text()
    end()
    assert "items{" not in registry.text()


@pytest.mark.parametrize(("combine", "value"), [(sum, 5), (min, 2), (max, 3)])
def test_sources_with_the_same_labels_make_one_series(combine, value):
    registry = metrics.Registry()
    for number in (2, 3):
        gauge = registry.gauge("items", "Items.", labels=["of"], combine=combine)
        gauge.read(lambda number=number: {("x",): number})
    assert samples(registry) == {("items", ("of", "x")): value}


def test_every_series_of_a_cluster_that_left_is_dropped():
    registry = metrics.Registry()
    writes = registry.counter("writes_total", "Writes.", labels=["verb", "cluster"])
    seconds = registry.histogram("seconds", "Time.", labels=["cluster"])
    registry.counter("tries_total", "Tries.", labels=["verb"]).labels("r1").inc()
    for cluster in ("r1", "r2"):
        for verb in ("get", "list"):
            writes.labels(verb, cluster).inc()
        seconds.labels(cluster).observe(1)
    registry.forget("cluster", "r1")
    found = samples(registry)
    assert not [key for key in found if ("cluster", "r1") in key]
    assert found["writes_total", ("cluster", "r2"), ("verb", "get")] == 1
    assert found["tries_total", ("verb", "r1")] == 1  # another label with that value


def test_the_same_name_is_the_same_metric_and_another_form_is_refused():
    registry = metrics.Registry()
    assert registry.counter("c_total", "C.", labels=["l"]) is registry.counter("c_total", "C.", labels=["l"])
    with pytest.raises(errors.HansaError, match=r"as gauge\(l\) and as counter\(l\); rename one of them"):
        registry.gauge("c_total", "C.", labels=["l"])
    with pytest.raises(errors.HansaError, match=r"as counter\(\) and as counter\(l\)"):
        registry.counter("c_total", "C.")


def test_two_registries_share_nothing():
    one, other = metrics.Registry(), metrics.Registry()
    one.counter("c_total", "C.").inc()
    assert samples(other) == {}
