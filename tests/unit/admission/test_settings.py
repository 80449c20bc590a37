"""What is said about the webhook on its command line is understood, or refused with a sentence."""

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
    assert settings.steering_keys == {"clusterID", "region"}


def test_it_is_found_by_its_address_by_a_service_or_by_a_url():
    assert read("--address", "127.0.0.1").address(81) == "https://127.0.0.1:81/mutate"
    assert read("--address", "::1").address(81) == "https://[::1]:81/mutate"
    assert read("--url", "https://hook.example/x").address(81) == "https://hook.example/x"
    assert read("--service", "n/s:8443").address(81) == Service("n", "s", 8443)


def test_a_self_made_certificate_is_for_the_name_that_the_api_server_calls():
    assert read("--address", "127.0.0.1").names() == ("127.0.0.1",)
    assert read("--url", "https://hook.example:9/x").names() == ("hook.example",)
    assert read("--service", "n/s").names() == ("s.n.svc", "s.n.svc.cluster.local")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "how does the API server reach a webhook on 0.0.0.0"),
        (["--tlscert", "a", "--no-install"], "--tlscert and --tlskey belong together"),
        (["--service", "n/s", "--url", "https://h/"], "--service and --url exclude each other"),
        (["--url", "http://h/"], "must look like https://HOST:PORT/mutate"),
        (["--address", "127.0.0.1", "--ca-bundle", "/nowhere"], "cannot read --ca-bundle /nowhere"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(flags, sentence):
    with pytest.raises(HansaError, match=sentence):
        read(*flags)
