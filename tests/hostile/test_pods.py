"""Fields of a pod by which it would leave its namespace: for its node, the control plane, or other namespaces."""

import asyncio

import pytest

from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.tenancy import api
from tenant_league import pod

pytestmark = pytest.mark.timeout(180)
ENFORCE = "pod-security.kubernetes.io/enforce"
SYSCTL = "net.ipv4.tcp_rmem"  # safe since version 1.32 of the standard


def security(**fields):
    return {"containers": [{"name": "main", "image": "example.com/app:1", "securityContext": fields}]}


def container(**fields):
    return {"containers": [{"name": "main", "image": "example.com/app:1", **fields}]}


def volume(**source):
    return {"volumes": [{"name": "v", **source}]}


BAD = {
    "seLinuxOptions.type: spc_t": security(seLinuxOptions={"type": "spc_t"}),
    "seccompProfile.type: Unconfined": security(seccompProfile={"type": "Unconfined"}),
    "appArmorProfile.type: Unconfined": security(appArmorProfile={"type": "Unconfined"}),
    "sysctls: kernel.msgmax": {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
    "livenessProbe.httpGet.host: 192.0.2.1": container(livenessProbe={"httpGet": {"port": 80, "host": "192.0.2.1"}}),
    "preStop.tcpSocket.host: 192.0.2.1": container(
        lifecycle={"preStop": {"tcpSocket": {"port": 80, "host": "192.0.2.1"}}}
    ),
    "spec.volumes[v].nfs:": volume(nfs={"server": "192.0.2.1", "path": "/"}),
    "spec.volumes[v].csi:": volume(csi={"driver": "example.com"}),
    "tolerates node-role.kubernetes.io/control-plane": {
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "value": "yes"}]
    },
    "tolerates node-role.kubernetes.io/etcd": {
        "tolerations": [{"key": "node-role.kubernetes.io/etcd", "operator": "Exists"}]
    },
    "tolerates CriticalAddonsOnly": {"tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}]},
}


async def test_a_pod_that_is_refused_says_why_and_another_tenants_pod_runs(mallory, alice, below, namespace):
    for tenant in (mallory, alice):
        is_bad = tenant is mallory
        await tenant.make(resources.PODS, "web", namespace, **pod(hostNetwork=is_bad))
    event = await mallory.event("Refused", "web", namespace)
    assert "spec.hostNetwork: true is not allowed for tenant mallory" in event["message"]
    await alice.phase("web", namespace)
    assert await below.look(resources.PODS, "web", mallory.below(namespace)) is None


async def test_no_field_weakens_what_confines_a_pod(mallory, below, namespace):
    names = {f"bad-{number}": field for number, field in enumerate(BAD)}
    for name, field in names.items():
        await mallory.make(resources.PODS, name, namespace, **pod(**BAD[field]))
    events = await asyncio.gather(*(mallory.event("Refused", name, namespace) for name in names))
    for event, field in zip(events, names.values(), strict=True):
        assert field in event["message"]
    assert not (await below.client.list(resources.PODS, namespace=mallory.below(namespace))).items


async def test_the_super_clusters_own_admission_is_a_second_fence_and_its_refusal_is_readable(
    mallory, below, namespace
):
    lower = mallory.below(namespace)
    made = await below.there(resources.NAMESPACES, lower)
    assert made["metadata"]["labels"][ENFORCE] == "baseline"
    # An administrator is stricter than we are: an older version of the standard, which allows fewer sysctls.
    older = {"metadata": {"labels": {f"{ENFORCE}-version": "v1.31"}}}
    await below.client.patch(resources.NAMESPACES, lower, older)
    sysctls = {"securityContext": {"sysctls": [{"name": SYSCTL, "value": "1"}]}}
    tried = Object.of(pod(metadata={"name": "tried"}, **sysctls))

    async def is_enforced():
        try:
            await below.client.create(resources.PODS, tried, namespace=lower, dry_run=True)
        except errors.Denied as error:
            return "violates PodSecurity" in str(error)  # or the service account is not there yet
        return False

    await eventually(is_enforced, within=60)
    await mallory.make(resources.PODS, "web", namespace, **pod(**sysctls))
    event = await mallory.event("Refused", "web", namespace)
    assert f'violates PodSecurity "baseline:v1.31": forbidden sysctls ({SYSCTL})' in event["message"]
    assert lower not in event["message"]


async def annotate(below, name, words):
    """Annotate a VirtualCluster; None removes an annotation."""
    annotations = {f"tenancy.x-k8s.io/{word}": value for word, value in words.items()}
    patch = {"metadata": {"annotations": annotations}}
    await below.client.patch(api.VIRTUAL_CLUSTERS, name, patch, namespace="default")


async def test_a_tenant_that_is_allowed_more_gets_it_from_the_admission_too_and_a_restricted_one_less(
    mallory, alice, below, namespace
):
    await mallory.make(resources.PODS, "web", namespace, **pod(hostPID=True))
    await alice.make(resources.PODS, "web", namespace, **pod())
    await mallory.event("Refused", "web", namespace)
    await alice.phase("web", namespace)
    virtual_clusters = {"mallory": {"allow": "hostPID"}, "alice": {"pod-security": "restricted"}}
    try:
        for name, words in virtual_clusters.items():
            await annotate(below, name, words)
        await below.there(resources.PODS, "web", mallory.below(namespace))
        for tenant, level in ((mallory, "privileged"), (alice, "restricted")):
            lower = tenant.below(namespace)
            await below.there(
                resources.NAMESPACES,
                lower,
                when=lambda found, level=level: found["metadata"]["labels"][ENFORCE] == level,
            )
        await alice.make(resources.PODS, "next", namespace, **pod())
        event = await alice.event("Refused", "next", namespace)
        assert "runAsNonRoot: true is required of tenant alice by Pod Security restricted" in event["message"]
        await alice.phase("web", namespace)  # a pod that exists is left alone
    finally:
        for name, words in virtual_clusters.items():
            await annotate(below, name, dict.fromkeys(words))
    await alice.phase("next", namespace)
