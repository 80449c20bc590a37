"""Ports and durations of all components: a value outside the range is refused by flag, value and range."""

import pytest

from hansa.cli import main

COMPONENTS = ("vc-syncer", "vc-manager", "vc-scheduler", "virtual-node", "super-agent")
SECONDS = (
    *(("vc-syncer", flag) for flag in ("--node-retention", "--nodes-linger", "--lost-after", "--fence-grace")),
    *(("vc-scheduler", flag) for flag in ("--lost-after", "--fence-grace")),
)


def parse(command, flag, value):
    words = [command, flag, value]
    return getattr(main.parser(words).parse_args(words), flag.removeprefix("--").replace("-", "_"))


def refusal(capsys, *words):
    with pytest.raises(SystemExit) as exit_:
        main.parser(words).parse_args(words)
    assert exit_.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("command", "flag", "value", "sentence"),
    [
        *(
            ("vc-syncer", "--vn-agent-port", v, f'"{v}" is not a port: use a number from 1 to 65535')
            for v in ("99999", "65536", "-1", "0", "http", "1.5", "")
        ),
        *(
            ("webhook", "--port", v, f'"{v}" is not a port: use a number from 0 to 65535')
            for v in ("99999", "65536", "-1", "https")
        ),
        *(
            ("webhook", "--service", f"n/s:{v}", f'"{v}" is not a port: use a number from 1 to 65535')
            for v in ("99999", "0")
        ),
        *(
            ("virtual-node", "--upper-address", f"a:{v}", f'"a:{v}" has an invalid port: use a number from 1 to 65535')
            for v in ("99999", "0")
        ),
        ("virtual-node", "--upper-address", "a:b", '"a:b" is not of the form HOST:PORT'),
    ],
)
def test_a_port_out_of_range_is_refused(capsys, command, flag, value, sentence):
    assert refusal(capsys, command, flag, value) == f"hansa {command}: error: argument {flag}: {sentence}"


@pytest.mark.parametrize("command", COMPONENTS)
def test_a_metrics_address_has_a_port_in_range(capsys, command):
    for good in ("127.0.0.1:8080", "127.0.0.1:0", "[::1]:65535", ":8080", ""):
        assert parse(command, "--metrics-addr", good) == good
    error = refusal(capsys, command, "--metrics-addr", "127.0.0.1:99999")
    assert error.endswith(
        'argument --metrics-addr: "127.0.0.1:99999" has an invalid port: use a number from 0 to 65535'
    )
    for bad in ("8080", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:http"):
        error = refusal(capsys, command, "--metrics-addr", bad)
        assert error.endswith(f'argument --metrics-addr: "{bad}" is invalid: use HOST:PORT, e.g. 127.0.0.1:8080')


def test_a_port_in_range_is_accepted():
    assert [parse("vc-syncer", "--vn-agent-port", value) for value in ("1", "65535")] == [1, 65535]
    assert [parse("webhook", "--port", value) for value in ("0", "65535")] == [0, 65535]
    assert parse("webhook", "--service", "n/s:65535").port == 65535
    assert parse("virtual-node", "--upper-address", "[::1]:65535") == "[::1]:65535"


@pytest.mark.parametrize(("command", "flag"), SECONDS)
def test_a_duration_is_finite_and_not_negative(capsys, command, flag):
    for bad in ("nan", "inf", "Infinity", "1e400", "-5", "-0.5", "1d", "1m 5s", "m", ""):
        error = refusal(capsys, command, flag, bad)
        assert error.endswith(
            f'"{bad}" is not a duration: use a finite number of seconds, 0 or more, or a form such as 1m30s'
        )
        assert flag in error
    name = "--node-retention" if flag == "--nodes-linger" else flag
    assert [parse(command, name, value) for value in ("0", "0.5", "1e3", "1m30s", "1.5h", "250ms")] == [
        *(0, 0.5, 1000, 90, 5400, 0.25)
    ]
