"""The Helm chart, rendered by the real helm: all values of the schema, and the manifests in deploy/."""

import json
import re
from pathlib import Path

import pytest
import yaml

from hansa import local
from hansa.local.machines.command import Failed, run

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "hansa"
MODES = ("virtualcluster", "pool", "tensile", "tensile-lower", "admiralty")
LOWERS = [
    {"name": "hamburg", "secret": "hamburg", "labels": {"clusterID": "hamburg"}, "scheduler": "default-scheduler"}
]
EVERYTHING = {
    "virtualNode": {"lowers": LOWERS},
    "multiScheduler": {"enabled": True},
    "descheduler": {"enabled": True, "policy": {"kind": "DeschedulerPolicy"}},
    "metrics": {"serviceMonitor": {"enabled": True}, "dashboard": {"enabled": True}},
    "image": {"digest": f"sha256:{'0' * 64}", "pullSecrets": ["registry"]},
    "namespace": {"create": True},
    "agent": {"clusterName": "east", "podNetworks": ["10.0.0.0/8"], "followClaims": True},
}


@pytest.fixture(scope="module")
async def helm(fleet):
    return (await local.binaries.ensure(["helm"], sources=fleet.sources))["helm"]


@pytest.fixture
def rendered(helm, tmp_path):
    """Render the chart with some values."""

    async def render(**values):
        path = tmp_path / "values.json"
        path.write_text(json.dumps(values))
        where = ("--namespace", "test", "--kube-version", "1.35.0")
        text = await run(str(helm), "template", "hansa", str(CHART), *where, "-f", str(path))
        return [one for one in yaml.safe_load_all(text) if one]

    return render


async def test_the_manifests_in_deploy_are_those_of_the_chart(helm, tmp_path):
    await run(str(ROOT / "tools" / "render-manifests"), str(tmp_path))
    for path in (ROOT / "deploy" / "all_in_one.yaml", *(ROOT / "deploy" / "manifests").iterdir()):
        fresh = tmp_path / path.relative_to(ROOT / "deploy")
        assert fresh.read_text() == path.read_text(), f"{path.name} is not up to date: run `make manifests`"


@pytest.mark.parametrize("mode", MODES)
async def test_every_object_has_labels_and_a_namespace_of_the_release(rendered, mode):
    for one in await rendered(mode=mode, **EVERYTHING):
        assert one["metadata"]["labels"]["app.kubernetes.io/instance"] == "hansa", one["metadata"]
        assert one["metadata"].get("namespace", "test") in ("test", "kube-system", "kube-node-lease")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"mode": "virtual-cluster"}, "/mode"),
        ({"manager": {"replica": 3}}, "replica"),
        ({"defaults": {"replicas": 0}}, "/defaults/replicas"),
        ({"vnAgent": {"kind": "Pod"}}, "/vnAgent/kind"),
        ({"virtualNode": {"lowers": [{"name": "hamburg"}]}}, "secret"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"mode": "tensile", "certManager": {"enabled": True}}, "set certManager.issuerRef.name"),
    ],
)
async def test_a_wrong_value_is_refused_and_named(rendered, values, field):
    with pytest.raises(Failed, match=re.escape(field)):
        await rendered(**values)


async def test_definitions_are_kept_unless_that_is_not_wanted(rendered):
    def definitions(objects):
        return [one["metadata"] for one in objects if one["kind"] == "CustomResourceDefinition"]

    kept = definitions(await rendered())
    assert {one["name"] for one in kept} == {"virtualclusters.tenancy.x-k8s.io", "clusterversions.tenancy.x-k8s.io"}
    assert {one["annotations"]["helm.sh/resource-policy"] for one in kept} == {"keep"}
    assert all("annotations" not in one for one in definitions(await rendered(crds={"keep": False})))
    assert definitions(await rendered(crds={"install": False})) == []


async def test_a_component_has_its_own_value_of_a_field_of_all(rendered):
    objects = await rendered(defaults={"replicas": 3, "args": ["--klog.v=4"]}, manager={"replicas": 1})
    found = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == "Deployment"}
    assert {name: spec["replicas"] for name, spec in found.items()} == {"vc-manager": 1, "vc-syncer": 3, "vn-agent": 3}
    for spec in found.values():
        assert "--klog.v=4" in spec["template"]["spec"]["containers"][0]["args"]


async def test_a_vn_agent_is_behind_a_service_or_on_each_node(rendered):
    def flags(objects, name):
        [pod] = [
            one["spec"]["template"]["spec"]
            for one in objects
            if one["metadata"]["name"] == name and "template" in one.get("spec", {})
        ]
        return pod["containers"][0]["args"], pod.get("hostNetwork", False)

    behind, each = await rendered(), await rendered(vnAgent={"kind": "DaemonSet"})
    assert "--vn-agent-address=$(VN_AGENT_SERVICE_HOST):$(VN_AGENT_SERVICE_PORT)" in flags(behind, "vc-syncer")[0]
    assert "--certificate-names=$(VN_AGENT_SERVICE_HOST)" in flags(behind, "vn-agent")[0]
    assert "--address=$(HOST_IP)" in flags(each, "vn-agent")[0]
    assert (flags(behind, "vn-agent")[1], flags(each, "vn-agent")[1]) == (False, True)


def test_the_dashboard_shows_metrics_that_are_there():
    documented = set(re.findall(r"`(hansa_\w+)`", (ROOT / "docs" / "metrics.md").read_text()))
    dashboard = json.loads((CHART / "files" / "dashboard.json").read_text())
    shown = {
        name.removesuffix("_bucket")
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"hansa_\w+", target["expr"])
    }
    assert len(shown) > 8
    assert shown <= documented


async def test_a_linter_finds_nothing_in_the_manifests_of_any_mode():
    await run(str(ROOT / "tools" / "lint-manifests"))


RIGHTS_BY_SETTING = {
    "podNetworks": (["10.0.0.0/8"], {"endpointslices": {"create", "patch"}}),
    "multiclusterServices": (True, {"endpointslices": {"create", "patch"}, "serviceimports": {"create", "delete"}}),
    "followClaims": (True, {"persistentvolumeclaims": {"list", "watch"}}),
    "followServiceAccounts": (True, {"serviceaccounts": {"list", "watch"}}),
}


@pytest.mark.parametrize("setting", RIGHTS_BY_SETTING)
async def test_an_agent_has_the_rights_that_a_setting_needs_and_only_then(rendered, setting):
    value, wanted = RIGHTS_BY_SETTING[setting]
    with_it = granted(await rendered(mode="admiralty", agent={setting: value}))
    without = granted(await rendered(mode="admiralty"))
    for resource, verbs in wanted.items():
        assert verbs <= with_it[resource]
        assert not verbs & without.get(resource, set())


def granted(objects):
    """The verbs that all ClusterRoles of the release give, by resource."""
    verbs = {}
    for one in objects:
        if one["kind"] == "ClusterRole":
            for rule in one["rules"]:
                for resource in rule["resources"]:
                    verbs.setdefault(resource, set()).update(rule["verbs"])
    return verbs
