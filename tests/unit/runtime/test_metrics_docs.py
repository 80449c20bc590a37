"""docs/metrics.md lists the metrics that the code defines, with their types and labels."""

import ast
import pathlib
import re

import hansa

SOURCES = pathlib.Path(hansa.__file__).parent
DOCUMENT = pathlib.Path(__file__).parents[3] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(?P<name>hansa_\w+)` \| (?P<type>\w+) \| (?P<labels>[^|]*)\|")


def assigned(tree, name):
    """The literal that a name is given anywhere in the module, alone or in `a, b = x, y`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = (
                zip(target.elts, value.elts, strict=True)
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                else [(target, value)]
            )
            for one, given in pairs:
                if isinstance(one, ast.Name) and one.id == name:
                    return given
    raise AssertionError(f"labels={name}: write the labels as a list where the metric is defined")


def defined():
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            kind, first = call.func.attr, call.args[0] if call.args else None
            if kind in ("counter", "gauge", "histogram") and isinstance(first, ast.Constant):
                labels = next((word.value for word in call.keywords if word.arg == "labels"), ast.List([]))
                labels = assigned(tree, labels.id) if isinstance(labels, ast.Name) else labels
                yield first.value, kind, tuple(ast.literal_eval(labels))


def documented():
    for line in DOCUMENT.read_text().splitlines():
        if found := ROW.match(line):
            yield found["name"], found["type"], tuple(re.findall(r"`(\w+)`", found["labels"]))


def test_every_metric_is_documented_with_its_type_and_labels():
    assert sorted(documented()) == sorted(set(defined())), "correct the table in docs/metrics.md"


def test_names_say_unit_and_type_as_prometheus_advises():
    for name, kind, _ in defined():
        assert name.endswith("_total") == (kind == "counter"), name
        assert kind != "histogram" or name.endswith("_seconds"), name
