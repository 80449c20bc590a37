"""The flags of the webhook are parsed, or refused with a message."""

import argparse
from pathlib import Path

import pytest

from hansa.admission.configuration import Service
from hansa.cli import webhook
from hansa.runtime.errors import HansaError


def read(*flags):
    parser = argparse.ArgumentParser()
    webhook.add_to(parser.add_subparsers())
    return webhook.read(parser.parse_args(["webhook", *flags]))


def test_the_flags_of_tensile_kubes_webhook_are_understood():
    settings = read(
        *("--address", "10.0.0.1", "--port", "8443", "--tlscert", "a", "--tlskey", "b", "--CA", "c"),
        *("--kubeconfig", "d", "--ignore-selector-keys", "clusterID,region"),
    )
    assert (settings.host, settings.port) == ("10.0.0.1", 8443)
    assert (settings.certificate, settings.key, settings.client_ca) == (Path("a"), Path("b"), Path("c"))
    assert settings.kubeconfig == Path("d")
    assert settings.upper_label_keys == {"clusterID", "region"}


def test_the_api_server_reaches_it_by_address_service_or_url():
    assert read("--address", "127.0.0.1").address(81) == "https://127.0.0.1:81/mutate"
    assert read("--address", "::1").address(81) == "https://[::1]:81/mutate"
    assert read("--url", "https://hook.example/x").address(81) == "https://hook.example/x"
    assert read("--service", "n/s:8443").address(81) == Service("n", "s", 8443)


def test_a_self_signed_certificate_has_the_name_that_the_api_server_connects_to():
    assert read("--address", "127.0.0.1").names() == ("127.0.0.1",)
    assert read("--url", "https://hook.example:9/x").names() == ("hook.example",)
    assert read("--service", "n/s").names() == ("s.n.svc", "s.n.svc.cluster.local")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "the API server cannot reach a webhook at 0.0.0.0: give --service"),
        (["--tlscert", "a", "--no-install"], "--tlscert and --tlskey must be given together"),
        (["--service", "n/s", "--url", "https://h/"], "--service and --url are mutually exclusive"),
        (["--url", "http://h/"], "must look like https://HOST:PORT/mutate"),
        (["--address", "127.0.0.1", "--ca-bundle", "/nowhere"], "cannot read --ca-bundle /nowhere"),
    ],
)
def test_flags_that_contradict_are_refused(flags, message):
    with pytest.raises(HansaError, match=message):
        read(*flags)
