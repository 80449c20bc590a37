import asyncio
import io
import json
import logging
import random

import pytest

from hansa.runtime import clock, logs, metrics, tasks


@pytest.fixture
def lines():
    """What is logged, as parsed JSON lines; the set-up of the test run comes back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    root.handlers = []
    logs.setup(logs.Form.JSON, "INFO", stream=stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers = handlers
    root.setLevel(level)


async def test_keys_bound_around_a_line_are_on_it_also_in_tasks_that_start_inside(lines):
    log = logging.getLogger("test")

    async def inside():
        log.info("worked", extra={"writes": 2})

    with logs.bound(key="a/b"):
        await asyncio.create_task(inside())
    log.info("outside")
    first, second = lines()
    assert (first["message"], first["key"], first["writes"], first["level"]) == ("worked", "a/b", 2, "info")
    assert "key" not in second


async def test_a_supervised_task_has_only_its_own_fields(lines):
    async def inside():
        logging.getLogger("test").info("worked")

    given = {"clock": clock.SystemClock(), "random": random.Random(1), "metrics": metrics.Registry()}
    async with tasks.Supervisor(**given) as supervisor:
        with logs.bound(key="a/b"):
            await supervisor.start("watch", inside, cluster="r1")
    (line,) = lines()
    assert (line["message"], line["cluster"]) == ("worked", "r1")
    assert "key" not in line


def test_an_exception_is_on_the_line_and_a_key_cannot_hide_the_message(lines):
    with logs.bound(level="mine", thing={1, 2}):
        try:
            raise ValueError("broken")
        except ValueError:
            logging.getLogger("test").exception("failed")
    (line,) = lines()
    assert line["level"] == "error"
    assert "ValueError: broken" in line["exception"]
    assert sorted(line["thing"]) == [1, 2]


def test_text_quotes_what_would_be_read_wrongly():
    record = logging.makeLogRecord({"msg": "done", "levelname": "INFO", "plain": "a/b", "spaced": "a b", "empty": ""})
    assert logs.TextFormatter().format(record).endswith('INFO    done plain=a/b spaced="a b" empty=""')


def test_fields_of_the_call_keep_their_order_after_those_that_are_bound(lines):
    with logs.bound(cluster="r1", resource="pods"):
        logging.getLogger("test").info("changed", extra={"cluster": "r2", "state": "open"})
    assert [*lines()[0].items()][:3] == [("resource", "pods"), ("cluster", "r2"), ("state", "open")]
