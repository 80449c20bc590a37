"""tensile-kube's files, deployed as its walkthrough says: values replaced, then `kubectl apply`."""

import base64
import datetime
import re
from pathlib import Path

import pytest
import yaml

from hansa.cli import main
from hansa.kube import certificates, resources
from hansa.kube.certificates import Subject
from hansa.local.machines.command import run

HACK = Path(__file__).parents[3] / "hack"
HOST = "hansa-webhook.hansa-system.svc"


def encoded(data):
    return base64.b64encode(data).decode()


def replaced(name, values):
    """The file with these values, each of which must have a place."""
    text = (HACK / name).read_text()
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert set(re.findall(r"\$\{\w+\}", body)) == set(values)
    for place, value in values.items():
        body = body.replace(place, value)
    return body


@pytest.fixture
async def apply(cluster, client, kubectl, tmp_path):
    """Applies a file to the shared cluster, and deletes it at the end."""
    applied = []

    async def kubectl_(verb, path):
        await run(str(kubectl), "--kubeconfig", str(cluster.kubeconfig), verb, "-f", str(path))

    async def apply(text, name):
        path = tmp_path / name
        path.write_text(text)
        applied.append(path)
        await kubectl_("apply", path)
        return {one["kind"]: one for one in yaml.safe_load_all(text)}

    yield apply
    for path in applied:
        await kubectl_("delete", path)


def arguments(objects):
    """The flags of the Deployment, as the program reads them."""
    [container] = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    return main.parser(container["args"]).parse_args(container["args"])


async def test_the_webhook_is_deployed_with_a_certificate_of_ones_own(apply, client):
    now = datetime.datetime.now(datetime.UTC)
    ca = certificates.authority("ca", now)
    pair = certificates.issue(ca, Subject(HOST, names=(HOST,)), now)
    values = {"${caBoudle}": encoded(ca.certificate), "${cert}": encoded(pair.certificate), "${key}": encoded(pair.key)}
    objects = await apply(replaced("webhook.yaml", values), "webhook.yaml")
    secret = await client.get(resources.SECRETS, "hansa-webhook-tls", namespace="hansa-system")
    assert secret.get("data").keys() == {"ca.crt", "tls.crt", "tls.key"}
    flags = arguments(objects)
    assert {flags.ca_bundle.name, flags.tlscert.name, flags.tlskey.name} == secret.get("data").keys()
    assert flags.service.host == HOST
    assert (await client.get(resources.DEPLOYMENTS, "hansa-webhook", namespace="hansa-system")).name


async def test_the_descheduler_is_deployed(apply, client):
    objects = await apply(replaced("descheduler.yaml", {}), "descheduler.yaml")
    assert arguments(objects).run
    assert (await client.get(resources.DEPLOYMENTS, "hansa-descheduler", namespace="hansa-system")).name
