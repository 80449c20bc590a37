"""The flags of `hansa agent`."""

import argparse
from ipaddress import ip_network

import pytest

from hansa.cli import agent
from hansa.kube.objects import NamespacedName
from hansa.runtime.errors import HansaError


def pod_networks(text):
    parser = argparse.ArgumentParser()
    agent.add_to(parser.add_subparsers())
    return agent.read(parser.parse_args(["agent", "--pod-networks", text])).mode.pod_networks


def webhook(*words):
    parser = argparse.ArgumentParser()
    agent.add_to(parser.add_subparsers())
    return agent.read(parser.parse_args(["agent", *words])).webhook


def test_a_pod_network_is_that_of_a_target_or_of_all():
    assert pod_networks("10.1.0.0/16, west=10.2.0.0/16,shop/c3=fd00::/48") == (
        ("", ip_network("10.1.0.0/16")),
        ("admiralty-cluster-west", ip_network("10.2.0.0/16")),
        ("admiralty-namespace-shop-c3", ip_network("fd00::/48")),
    )


@pytest.mark.parametrize(
    "entry", ["=10.1.0.0/16", "/west=10.1.0.0/16", "shop/=10.1.0.0/16", "a/b/c=10.1.0.0/16", "west="]
)
def test_a_pod_network_without_a_target_or_network_is_refused(capsys, entry):
    with pytest.raises(SystemExit):
        pod_networks(entry)
    assert "use networks such as 10.244.0.0/16,cluster2=" in capsys.readouterr().err


def test_the_certificate_of_the_webhook_is_given_or_shared():
    service = ("--webhook-service", "admiralty/agent")
    shared = webhook(*service, "--webhook-cert-secret", "admiralty/tls", "--webhook-owner", "agent")
    assert (shared.secret, shared.owner) == (NamespacedName("admiralty", "tls"), "agent")
    with pytest.raises(HansaError, match="mutually exclusive"):
        webhook(*service, "--webhook-cert-secret", "a/b", "--webhook-cert", "tls.crt", "--webhook-key", "tls.key")
    with pytest.raises(SystemExit):
        webhook(*service, "--webhook-cert-secret", "tls")
