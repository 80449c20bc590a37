"""`hansa virtual-node` as a program: errors at its start, health and metrics, and its shutdown."""

import asyncio
import datetime
import json

import pytest

import kubelet_calls
import programs
from eventually import eventually
from hansa.kube import certificates
from league import fresh_name, pod


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--provider", "aws", "--client-kubeconfig", "x"], 'hansa: unknown --provider "aws"'),
        (
            ["--kubeconfig", "/nowhere", "--client-kubeconfig", "x"],
            "hansa: there is no kubeconfig at /nowhere; correct --kubeconfig",
        ),
        ([], "hansa: no lower cluster given"),
    ],
)
async def test_what_cannot_be_is_one_sentence_and_an_exit_code(flags, sentence, tmp_path):
    program = await programs.start("virtual-node", *flags, log=tmp_path / "log")
    assert await program.ended() == 1
    [line] = (tmp_path / "log").read_text().splitlines()
    assert line.startswith(sentence)


async def test_the_seeds_own_command_line_serves_a_node(league, upper_namespace, tmp_path):
    """Flags and variables as tensile-kube's description has them, word for word but for the paths and the address."""
    await league.stop()
    now = datetime.datetime.now(datetime.UTC)
    subject = certificates.Subject("127.0.0.9", names=("127.0.0.9",))
    pair = certificates.issue(certificates.authority("test", now), subject, now)
    (tmp_path / "k8s.cer").write_bytes(pair.certificate)
    (tmp_path / "k8s.key").write_bytes(pair.key)
    variables = {
        "KUBELET_PORT": "10350",
        "APISERVER_CERT_LOCATION": str(tmp_path / "k8s.cer"),
        "APISERVER_KEY_LOCATION": str(tmp_path / "k8s.key"),
        "VKUBELET_TAINT_KEY": "example.com/below",
        "VKUBELET_TAINT_VALUE": "yes",
        "VKUBELET_TAINT_EFFECT": "NoSchedule",
    }
    flags = (
        "--nodename 127.0.0.9 --provider k8s --kube-api-qps 500 --kube-api-burst 1000 --client-qps 500"
        f" --client-burst 1000 --kubeconfig {league.upper.cluster.kubeconfig}"
        f" --client-kubeconfig {league.lowers['hamburg'].cluster.kubeconfig} --klog.v 4 --log-level debug"
        " --enableControllers PVControllers,RBACControllers,ServiceControllers"
        " --ignore-labels group.batch.scheduler.tencent.com"
    )
    async with programs.hansa("virtual-node", *flags.split(), log=tmp_path / "log", env=variables):
        node = await eventually(lambda: league.upper.find("node", "127.0.0.9"))
        assert node["spec"]["taints"][0] == {"key": "example.com/below", "value": "yes", "effect": "NoSchedule"}
        assert {"type": "InternalIP", "address": "127.0.0.9"} in node["status"]["addresses"]
        assert node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 10350
        assert await kubelet_calls.call(10350, "/healthz", address="127.0.0.9") == (401, "Unauthorized")
        made = pod("p", nodeName="127.0.0.9")
        await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
        await league.phase(upper_namespace, "p")
        await league.upper.kubectl("-n", upper_namespace, "delete", "pod", "p")
    await league.upper.kubectl("delete", "node", "127.0.0.9")


async def test_health_and_metrics_are_served(league):
    assert await league.page("/healthz") == "ok"
    assert await league.page("/readyz") == "ok"
    assert 'hansa_store_objects{cluster="upper",resource="pods"}' in await league.page("/metrics")


async def test_a_deleted_virtual_node_is_created_again(league):
    before = await league.upper.find("node", "vn-lubeck")
    await league.upper.kubectl("delete", "node", "vn-lubeck")

    async def anew():
        node = await league.upper.find("node", "vn-lubeck")
        return node is not None and node["metadata"]["uid"] != before["metadata"]["uid"]

    await eventually(anew)
    await league.ready()


async def test_it_stops_promptly_on_request_and_keeps_its_nodes_and_pods(league, upper_namespace):
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(pod("p", on="hamburg")))
    await league.phase(upper_namespace, "p")
    async with asyncio.timeout(20):  # less than the grace that it has
        await league.stop()
    assert await league.upper.find("node", "vn-hamburg")
    assert await league.lowers["hamburg"].find("pod", "p", namespace=upper_namespace)
    await league.start()
    await league.ready()


async def test_of_two_that_elect_one_works_and_the_other_takes_over(league, upper_namespace, tmp_path):
    """lubeck is the upper cluster here, so that the league's own program has nothing to do with it."""
    name, lubeck = fresh_name("vn"), league.lowers["lubeck"]
    flags = [
        *("virtual-node", "--leader-elect", "--nodename", name),
        *("--kubeconfig", str(lubeck.cluster.kubeconfig)),
        *("--client-kubeconfig", str(league.lowers["hamburg"].cluster.kubeconfig)),
    ]
    await lubeck.kubectl("create", "namespace", upper_namespace)
    async with programs.hansa(*flags, log=tmp_path / "one") as one, programs.hansa(*flags, log=tmp_path / "two") as two:
        await eventually(lambda: lubeck.find("node", name))
        leader = await eventually(lambda: _leader(one, two))
        leader.kill()
        made = pod("p", nodeName=name)
        await lubeck.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
        wait = ("wait", "pod/p", "--for=jsonpath={.status.phase}=Running", "--timeout=120s")
        await lubeck.kubectl("-n", upper_namespace, *wait)
        await lubeck.kubectl("-n", upper_namespace, "delete", "pod", "p")
    await lubeck.kubectl("delete", "node", name)


async def _leader(*candidates):
    leading = [one for one in candidates if " became leader " in one.log.read_text()]
    assert len(leading) <= 1, "two lead"
    return leading[0] if leading else None
