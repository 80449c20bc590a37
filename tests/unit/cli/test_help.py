"""`--help` of all commands: every boolean flag has its default in the same form."""

import argparse

import pytest

from hansa.cli import main
from hansa.cli.kubectl_vc import main as kubectl_vc


def parsers(parser):
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers(below)


def booleans():
    for top in (main.parser([]), kubectl_vc.parser()):
        for parser in parsers(top):
            for action in parser._actions:
                is_boolean = isinstance(action, argparse._StoreTrueAction | argparse.BooleanOptionalAction)
                if (is_boolean or action.metavar == "true|false") and action.help != argparse.SUPPRESS:
                    yield pytest.param(action, id=f"{parser.prog} {action.option_strings[-1]}")


@pytest.mark.parametrize("action", list(booleans()))
def test_a_boolean_flag_has_its_default_in_its_help(action):
    ends = ("(default true)", "(default false)")
    assert action.help.endswith(ends)
    if action.default is not None:
        assert action.help.endswith(ends[0] if action.default else ends[1])


def test_the_first_line_has_the_purpose_of_the_program():
    assert main.parser([]).description == "Syncs workloads between Kubernetes clusters."
