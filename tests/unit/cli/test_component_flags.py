"""The flags that long-running commands share."""

import argparse

import pytest

from hansa.cli import component_flags


def read(*words, aliases=()):
    parser = argparse.ArgumentParser(exit_on_error=False)
    component_flags.add_metrics(parser)
    component_flags.add_leader_election(parser, *aliases)
    return parser.parse_args(words)


def test_metrics_and_leader_election_are_off_by_default():
    assert read().metrics_addr == ""
    assert component_flags.election_namespace(read()) == ""


@pytest.mark.parametrize(
    ("words", "namespace"),
    [
        (["--leader-elect"], "kube-system"),
        (["--leader-elect=true", "--leader-elect-namespace", "hansa"], "hansa"),
        (["--leader-elect", "--other-namespace", "hansa"], "hansa"),
        (["--leader-elect=false", "--leader-elect-namespace", "hansa"], ""),
    ],
)
def test_the_election_has_a_namespace(words, namespace):
    assert component_flags.election_namespace(read(*words, aliases=["--other-namespace"])) == namespace


def test_a_value_that_is_no_boolean_is_refused():
    with pytest.raises(argparse.ArgumentError, match='"yes" is not a boolean: use true or false'):
        read("--leader-elect=yes")
