"""Objects that a pod refers to are synced first, follow the upper object, and are deleted with the last reference."""

import base64
import json

import programs
from eventually import eventually
from league import container, fresh_name, pod
from programs import Kubectl


def config(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name, **data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def using_all(name, on):
    """A pod that refers to ConfigMaps and Secrets in every way."""
    env = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c-env", "key": "k"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s-env", "key": "k"}}},
    ]
    env_from = [{"configMapRef": {"name": "c-from"}}, {"secretRef": {"name": "s-from"}}]
    projected = [{"configMap": {"name": "c-projected"}}, {"secret": {"name": "s-projected"}}]
    volumes = [
        {"name": "c", "configMap": {"name": "c-volume"}},
        {"name": "s", "secret": {"secretName": "s-volume"}},
        {"name": "p", "projected": {"sources": projected}},
    ]
    return pod(
        name,
        on=on,
        containers=[container(env=env)],
        initContainers=[container("init", envFrom=env_from)],
        volumes=volumes,
        imagePullSecrets=[{"name": "s-pull"}],
    )


CONFIGS = ("c-env", "c-from", "c-projected", "c-volume")
SECRETS = ("s-env", "s-from", "s-projected", "s-volume", "s-pull")


async def create(league, namespace, *objects):
    items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    await league.upper.kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(items))


async def test_everything_that_a_pod_refers_to_arrives_before_it_and_leaves_after_it(league, upper_namespace):
    hamburg, lubeck = league.lowers["hamburg"], league.lowers["lubeck"]
    objects = [*(config(name, k="v") for name in CONFIGS), *(secret(name, k="v") for name in SECRETS)]
    await create(league, upper_namespace, *objects, config("unused"))
    await create(league, upper_namespace, using_all("p", "hamburg"))
    await league.phase(upper_namespace, "p")
    lower = await hamburg.find("pod", "p", namespace=upper_namespace)
    made = lower["metadata"]["creationTimestamp"]
    for kind, names in (("configmap", CONFIGS), ("secret", SECRETS)):
        for name in names:
            copy = await hamburg.find(kind, name, namespace=upper_namespace)
            assert copy is not None, name
            assert copy["metadata"]["annotations"]["global"] == "true"
            assert copy["metadata"]["creationTimestamp"] <= made
            assert await lubeck.find(kind, name, namespace=upper_namespace) is None
    assert await hamburg.find("configmap", "unused", namespace=upper_namespace) is None
    await league.upper.kubectl("-n", upper_namespace, "delete", "pod", "p")
    for kind, names in (("configmap", CONFIGS), ("secret", SECRETS)):
        for name in names:
            await league.gone(hamburg, kind, name, namespace=upper_namespace)


async def test_a_secret_in_the_environment_stays_a_reference(league, upper_namespace):
    await create(league, upper_namespace, secret("s", k="very-secret"))
    env = [{"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    await create(league, upper_namespace, pod("p", on="hamburg", containers=[container(env=env)]))
    await league.phase(upper_namespace, "p")
    lower = await league.lowers["hamburg"].find("pod", "p", namespace=upper_namespace)
    assert env[0] in lower["spec"]["containers"][0]["env"]
    assert "very-secret" not in json.dumps(lower)


async def test_changes_of_what_pods_refer_to_follow(league, upper_namespace):
    volumes = [{"name": "c", "configMap": {"name": "c"}}]
    await create(league, upper_namespace, config("c", k="1"), pod("p", on="hamburg", volumes=volumes))
    await league.phase(upper_namespace, "p")
    await create(league, upper_namespace, config("c", k="2", more="3"))

    async def followed():
        copy = await league.lowers["hamburg"].find("configmap", "c", namespace=upper_namespace)
        return copy["data"] == {"k": "2", "more": "3"}

    await eventually(followed)


async def test_a_referenced_object_that_is_created_later_is_synced_then(league, upper_namespace):
    volumes = [{"name": "c", "configMap": {"name": "late"}}]
    await create(league, upper_namespace, pod("p", on="lubeck", volumes=volumes))
    await league.there(league.lowers["lubeck"], "pod", "p", namespace=upper_namespace)
    await create(league, upper_namespace, config("late", k="v"))
    await league.there(league.lowers["lubeck"], "configmap", "late", namespace=upper_namespace)


async def test_a_foreign_object_of_the_same_name_is_left_alone_and_reported(league, upper_namespace):
    hamburg = league.lowers["hamburg"]
    await hamburg.kubectl("create", "namespace", upper_namespace)
    await hamburg.kubectl("-n", upper_namespace, "create", "configmap", "c", "--from-literal=whose=theirs")
    volumes = [{"name": "c", "configMap": {"name": "c"}}]
    await create(league, upper_namespace, config("c", whose="ours"), pod("p", on="hamburg", volumes=volumes))

    async def reported():
        events = await league.upper.all("events", namespace=upper_namespace)
        return [
            one
            for one in events
            if one["involvedObject"]["name"] == "p" and "is not managed by Hansa" in one["message"]
        ]

    await eventually(reported)
    assert (await hamburg.find("configmap", "c", namespace=upper_namespace))["data"] == {"whose": "theirs"}


async def test_the_token_of_a_lower_pod_is_valid_at_the_upper_api_server(league, upper_namespace, kubectl, tmp_path):
    hamburg = league.lowers["hamburg"]
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    await create(league, upper_namespace, account, pod("p", on="hamburg", serviceAccountName="robot"))
    await league.phase(upper_namespace, "p")
    lower = await hamburg.find("pod", "p", namespace=upper_namespace)
    assert lower["spec"]["automountServiceAccountToken"] is False
    assert lower["spec"]["serviceAccountName"] == "robot"
    sources = [
        source
        for volume in lower["spec"]["volumes"]
        for source in volume.get("projected", {}).get("sources", [])
    ]  # fmt: skip
    assert not any("serviceAccountToken" in source for source in sources)
    [held] = [source["secret"] for source in sources if "secret" in source]
    token_secret = await hamburg.find("secret", held["name"], namespace=upper_namespace)
    token = base64.b64decode(token_secret["data"][held["items"][0]["key"]]).decode()
    config = tmp_path / "token.kubeconfig"
    config.write_text(league.upper.with_token(token))
    whoami = Kubectl(kubectl, config)
    answer = json.loads(await whoami("auth", "whoami", "-o", "json"))
    assert answer["status"]["userInfo"]["username"] == f"system:serviceaccount:{upper_namespace}:robot"
    [ca] = [source["configMap"] for source in sources if "configMap" in source]
    copy = await hamburg.find("configmap", ca["name"], namespace=upper_namespace)
    original = await league.upper.find("configmap", "kube-root-ca.crt", namespace=upper_namespace)
    assert copy["data"] == original["data"], "the CA is the upper API server's"


async def test_a_service_account_that_the_lower_cluster_makes_itself_serves_as_well(league):
    """A new namespace below gets its own account `default` while ours is synced: the pod runs in either order."""
    names = [fresh_name() for _ in range(10)]
    for name in names:
        await league.upper.kubectl("create", "namespace", name)
        await eventually(lambda name=name: league.upper.find("serviceaccount", "default", namespace=name))
        await create(league, name, pod("p", on="hamburg"))
    for name in names:
        await league.phase(name, "p")
        for member in (league.upper, league.lowers["hamburg"]):
            await member.kubectl("delete", "namespace", name, "--wait=false")


async def test_one_token_serves_all_pods_of_a_service_account(league, upper_namespace):
    await create(league, upper_namespace, *(pod(f"p-{n}", on="hamburg") for n in range(3)))
    for n in range(3):
        await league.phase(upper_namespace, f"p-{n}")
    secrets = await league.lowers["hamburg"].all("secrets", namespace=upper_namespace)
    assert len([one for one in secrets if one["metadata"]["name"].startswith("hansa-token-")]) == 1


async def test_rights_follow_the_service_account_that_they_concern(league, upper_namespace):
    hamburg = league.lowers["hamburg"]
    kube = league.upper.kubectl
    await kube("-n", upper_namespace, "create", "serviceaccount", "robot")
    await kube("-n", upper_namespace, "create", "role", "reader", "--verb=get", "--resource=pods")
    await kube("-n", upper_namespace, "create", "role", "other", "--verb=get", "--resource=pods")
    subject = f"--serviceaccount={upper_namespace}:robot"
    await kube("-n", upper_namespace, "create", "rolebinding", "read", "--role=reader", subject)
    await create(league, upper_namespace, pod("p", on="hamburg", serviceAccountName="robot"))
    await league.phase(upper_namespace, "p")
    await league.there(hamburg, "rolebinding", "read", namespace=upper_namespace)
    await league.there(hamburg, "role", "reader", namespace=upper_namespace)
    assert await hamburg.find("role", "other", namespace=upper_namespace) is None
    assert await league.lowers["lubeck"].find("role", "reader", namespace=upper_namespace) is None
    await kube("-n", upper_namespace, "delete", "pod", "p")
    await league.gone(hamburg, "rolebinding", "read", namespace=upper_namespace)
    await league.gone(hamburg, "role", "reader", namespace=upper_namespace)


async def test_rights_services_and_volumes_stay_when_they_are_switched_off(league, upper_namespace, tmp_path):
    hamburg, kube = league.lowers["hamburg"], league.upper.kubectl
    await league.stop()
    flags = ["--nodename", "vn-alone", "--kubeconfig", str(league.upper.cluster.kubeconfig)]
    lower = ["--client-kubeconfig", str(hamburg.cluster.kubeconfig), "--enable-controllers", ""]
    async with programs.hansa("virtual-node", *flags, *lower, log=tmp_path / "log"):
        await kube("-n", upper_namespace, "create", "serviceaccount", "robot")
        await kube("-n", upper_namespace, "create", "role", "reader", "--verb=get", "--resource=pods")
        subject = f"--serviceaccount={upper_namespace}:robot"
        await kube("-n", upper_namespace, "create", "rolebinding", "read", "--role=reader", subject)
        await kube("-n", upper_namespace, "create", "service", "clusterip", "s", "--tcp=80")
        alone = pod("p", nodeName="vn-alone", serviceAccountName="robot")
        await create(league, upper_namespace, alone)
        await league.phase(upper_namespace, "p")
        for kind, name in (("role", "reader"), ("rolebinding", "read"), ("service", "s")):
            assert await hamburg.find(kind, name, namespace=upper_namespace) is None, kind
        await kube("-n", upper_namespace, "delete", "pod", "p")
    await kube("delete", "node", "vn-alone")
