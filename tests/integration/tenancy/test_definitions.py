"""VirtualClusters and ClusterVersions that the API server accepts and refuses."""

import pytest

import virtual_clusters
from hansa.kube import errors, resources
from hansa.tenancy import api, installing
from hansa.tenancy.api import CLUSTER_VERSIONS, VIRTUAL_CLUSTERS
from programs import Kubectl


async def test_a_virtual_cluster_as_upstream_writes_it_is_taken(meta, home):
    sample = virtual_clusters.virtual_cluster(
        "vc-sample-1",
        home,
        clusterDomain="cluster.local",
        opaqueMetaPrefixes=["tenancy.x-k8s.io"],
        transparentMetaPrefixes=["k8s.net.status"],
        pkiExpireDays=365,
        serviceCidr="10.32.0.0/16",
    )
    made = await meta.create(VIRTUAL_CLUSTERS, sample, namespace=home)
    assert made.spec == sample.spec
    vc = api.virtual_cluster(made)
    assert (vc.domain, vc.expire_days, str(vc.service_cidr)) == ("cluster.local", 365, "10.32.0.0/16")


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"clusterVersionName": ""}, "clusterVersionName"),
        ({"clusterVersionName": "Not A Name"}, "clusterVersionName"),
        ({"pkiExpireDays": -1}, "pkiExpireDays"),
        ({"pkiExpireDays": 0}, "pkiExpireDays"),
        ({"pkiExpireDays": "a year"}, "pkiExpireDays"),
        ({"serviceCidr": "10.32.0.0"}, "must be a CIDR"),
        ({"serviceCidr": "10.32.0.300/16"}, "must be a CIDR"),
        ({"serviceCidr": "10.32.0.1/16"}, "must be a network address"),
        ({"serviceCidr": "10.32.0.0/31"}, "prefix"),
        ({"clusterDomain": "-bad-.example"}, "clusterDomain"),
        ({"clusterDomain": "two..dots"}, "clusterDomain"),
        ({"opaqueMetaPrefixes": [""]}, "opaqueMetaPrefixes"),
    ],
)
async def test_nonsense_is_refused_with_the_field_that_is_wrong(meta, home, spec, complaint):
    with pytest.raises(errors.Invalid, match=complaint):
        await meta.create(VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster("bad", home, **spec), dry_run=True)


@pytest.mark.parametrize("name", ["a.dotted.name", "x" * 64])
async def test_a_name_that_no_namespace_could_bear_is_refused(meta, home, name):
    with pytest.raises(errors.Invalid, match="part of a namespace"):
        await meta.create(VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster(name, home), dry_run=True)


async def test_the_service_cidr_and_the_cluster_domain_are_immutable(meta, home):
    made = await meta.create(
        VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster("fixed", home, serviceCidr="10.40.0.0/20")
    )
    for change in ({"serviceCidr": "10.41.0.0/20"}, {"serviceCidr": None}, {"clusterDomain": "other.example"}):
        with pytest.raises(errors.Invalid, match="is immutable"):
            await meta.patch(VIRTUAL_CLUSTERS, made.name, {"spec": change}, namespace=home)
    await meta.patch(VIRTUAL_CLUSTERS, made.name, {"spec": {"clusterVersionName": "cv-sample-lb"}}, namespace=home)


async def test_only_the_status_subresource_changes_the_status(meta, home):
    made = await meta.create(VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster("status", home))
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    assert (await meta.patch(VIRTUAL_CLUSTERS, made.name, status, namespace=home)).status == {}
    reported = await meta.patch(VIRTUAL_CLUSTERS, made.name, status, namespace=home, subresource="status")
    assert api.virtual_cluster(reported).is_running
    bad = {"status": {"phase": "Dancing"}}
    with pytest.raises(errors.Invalid, match="phase"):
        await meta.patch(VIRTUAL_CLUSTERS, made.name, bad, namespace=home, subresource="status")


async def test_a_cluster_version_as_upstream_writes_it_is_taken(meta):
    await meta.create(CLUSTER_VERSIONS, virtual_clusters.cluster_version("as-upstream", etcd=["--v=2"]), dry_run=True)


@pytest.mark.parametrize("component", ["etcd", "apiServer", "controllerManager"])
async def test_a_bundle_of_another_name_is_refused(meta, component):
    version = virtual_clusters.cluster_version("misnamed").to_dict()
    version["spec"][component]["metadata"]["name"] = "other"
    with pytest.raises(errors.Invalid, match="metadata.name must be"):
        await meta.create(CLUSTER_VERSIONS, virtual_clusters.Object.of(version), dry_run=True)


@pytest.mark.parametrize("missing", ["etcd", "apiServer"])
async def test_a_control_plane_needs_a_store_and_a_server(meta, missing):
    version = virtual_clusters.cluster_version("lacking").to_dict()
    del version["spec"][missing]
    with pytest.raises(errors.Invalid, match=missing):
        await meta.create(CLUSTER_VERSIONS, virtual_clusters.Object.of(version), dry_run=True)


async def test_installing_again_changes_nothing_and_keeps_what_people_changed(meta):
    await meta.patch(CLUSTER_VERSIONS, "cv-sample-np", {"metadata": {"labels": {"mine": "yes"}}})
    before = {one.name: one.version for one in (await meta.list(CLUSTER_VERSIONS)).items}
    crds = [await meta.get(resources.CUSTOM_RESOURCE_DEFINITIONS, one.name) for one in installing.definitions()]
    await installing.install(meta)
    assert {one.name: one.version for one in (await meta.list(CLUSTER_VERSIONS)).items} == before
    again = [await meta.get(resources.CUSTOM_RESOURCE_DEFINITIONS, one.name) for one in crds]
    assert [one.version for one in again] == [one.version for one in crds]


async def test_kubectl_shows_phase_and_version(meta, home, kubectl, cluster):

    await meta.create(VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster("shown", home))
    lines = (await Kubectl(kubectl, cluster.kubeconfig)("get", "vc", "-n", home, "-o", "wide")).splitlines()
    assert lines[0].split() == ["NAME", "AGE", "PHASE", "CLUSTERVERSION", "CLUSTERNAMESPACE", "REASON", "MESSAGE"]
    assert "cv-sample-np" in lines[1]
