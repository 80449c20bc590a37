import pytest

from hansa.runtime import errors, metrics


def test_the_text_is_what_prometheus_reads():
    registry = metrics.Registry()
    registry.counter("reads_total", "Reads.", labels=["from"]).of("a").inc()
    registry.gauge("depth", "Depth of\nthe queue.").of().set(2.5)
    seconds = registry.histogram("seconds", "Time.", labels=["op"], bounds=(0.1, 1))
    for value in (0.1, 0.5, 7):
        seconds.of("get").observe(value)
    assert registry.text().splitlines() == [
        "# HELP reads_total Reads.",
        "# TYPE reads_total counter",
        'reads_total{from="a"} 1',
        "# HELP depth Depth of\\nthe queue.",
        "# TYPE depth gauge",
        "depth 2.5",
        "# HELP seconds Time.",
        "# TYPE seconds histogram",
        'seconds_bucket{op="get",le="0.1"} 1',
        'seconds_bucket{op="get",le="1"} 2',
        'seconds_bucket{op="get",le="+Inf"} 3',
        'seconds_sum{op="get"} 7.6',
        'seconds_count{op="get"} 3',
    ]


def test_label_values_are_escaped():
    registry = metrics.Registry()
    registry.counter("c", "C.", labels=["l"]).of('a"b\\c\nd').inc()
    assert r'c{l="a\"b\\c\nd"} 1' in registry.text()


def test_a_gauge_can_be_read_when_somebody_looks():
    registry = metrics.Registry()
    items = [1, 2]
    end = registry.gauge("items", "Items.", labels=["of"]).read(lambda: {("x",): len(items)})
    assert 'items{of="x"} 2' in registry.text()
    items.append(3)
    assert 'items{of="x"} 3' in registry.text()
    end()
    assert "items{" not in registry.text()


def test_a_series_whose_subject_is_gone_can_be_dropped():
    registry = metrics.Registry()
    up = registry.gauge("up", "Up.", labels=["cluster"])
    up.of("r1").set(1)
    up.drop("r1")
    assert "up{" not in registry.text()


def test_the_same_name_is_the_same_metric_and_another_form_is_refused():
    registry = metrics.Registry()
    assert registry.counter("c", "C.", labels=["l"]) is registry.counter("c", "C.", labels=["l"])
    with pytest.raises(errors.HansaError, match="give one of them another name"):
        registry.gauge("c", "C.", labels=["l"])
    with pytest.raises(errors.HansaError, match="has the labels"):
        registry.counter("c", "C.", labels=["l"]).of("a", "b")
