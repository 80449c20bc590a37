"""The flags of vc-syncer with what tenants' pods reach."""

import argparse

import pytest

from hansa.cli import reach_flags
from hansa.tenancy.syncing.api_relay import RelaySettings
from hansa.tenancy.syncing.dns_objects import DnsSettings


def read(*words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    reach_flags.add_to(parser)
    return parser.parse_args(words)


def relay(text):
    return read("--api-relay-address", text).api_relay_address


def test_by_default_tenants_have_a_dns_and_no_relay():
    found = read()
    assert (reach_flags.dns(found), found.api_relay_address) == (DnsSettings(), None)


def test_the_dns_has_an_image_and_servers_for_other_names():
    found = read("--tenant-dns=false", "--tenant-dns-image=a:1", "--tenant-dns-forward=")
    assert reach_flags.dns(found) == DnsSettings(is_enabled=False, image="a:1", forward="")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", None),
        ("10.0.0.5", RelaySettings("10.0.0.5")),
        ("10.0.0.5:7000-7010", RelaySettings("10.0.0.5", range(7000, 7011))),
        ("fd00::5", RelaySettings("fd00::5")),
        ("[fd00::5]:7000-7000", RelaySettings("fd00::5", range(7000, 7001))),
    ],
)
def test_the_relay_has_an_address_and_maybe_ports(text, wanted):
    assert relay(text) == wanted


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("here", "is not an IP address, or one with ports: 10.0.0.5:20000-29999"),
        ("10.0.0.5:7000", "is not an IP address"),
        ("127.0.0.1", "is not an address that pods reach"),
        ("0.0.0.0", "is not an address that pods reach"),
        ("10.0.0.5:80-90", "has no ports from 1024 to 65535 in order"),
        ("10.0.0.5:7010-7000", "has no ports from 1024 to 65535 in order"),
    ],
)
def test_another_address_is_refused(text, sentence):
    with pytest.raises(argparse.ArgumentError, match=sentence):
        relay(text)
