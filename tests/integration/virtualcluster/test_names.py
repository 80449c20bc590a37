"""Names of namespaces and copies in the super cluster, and the reference's labels and annotations on them."""

import hashlib

from hansa.kube import resources
from tenant_league import OWN_NAMESPACES


async def test_every_namespace_of_a_tenant_is_in_the_super_cluster_with_annotations_of_its_owner(tenants, blue):
    vc = await tenants.super.kubectl.get("vc", "blue")
    for namespace in OWN_NAMESPACES:
        above = await blue.there(resources.NAMESPACES, namespace)
        below = await tenants.super.there(resources.NAMESPACES, blue.below(namespace))
        words = below["metadata"]["annotations"]
        assert {word: words.get(f"tenancy.x-k8s.io/{word}") for word in WORDS} == {
            "cluster": blue.key,
            "namespace": namespace,
            "uid": above["metadata"]["uid"],
            "vcname": "blue",
            "vcnamespace": "default",
            "vcuid": vc["metadata"]["uid"],
        }
    assert blue.key == f"default-{hashlib.sha256(vc['metadata']['uid'].encode()).hexdigest()[:6]}-blue"


WORDS = ("cluster", "namespace", "uid", "vcname", "vcnamespace", "vcuid")


async def test_a_name_that_would_be_too_long_ends_in_a_hash_of_the_whole(tenants, blue):
    namespace = "a-very-long-tenant-namespace-name-that-overflows-sixty-three"
    await blue.make(resources.NAMESPACES, namespace)
    whole = blue.below(namespace)
    below = f"{whole[:57]}-{hashlib.sha256(whole.encode()).hexdigest()[:5]}"
    found = await tenants.super.there(resources.NAMESPACES, below)
    assert found["metadata"]["annotations"]["tenancy.x-k8s.io/namespace"] == namespace
    await blue.make(resources.CONFIG_MAPS, "c", namespace, data={"a": "1"})
    await tenants.super.there(resources.CONFIG_MAPS, "c", below)
    await blue.client.delete(resources.NAMESPACES, namespace)


async def test_a_copy_has_the_labels_of_the_tenant_and_the_annotations_of_the_list(tenants, blue, namespace):
    metadata = {
        "labels": {"app": "x", "app.kubernetes.io/name": "x"},
        "annotations": {"note": "n", "deployment.kubernetes.io/revision": "1"},
    }
    made = await blue.make(resources.CONFIG_MAPS, "c", namespace, metadata=metadata, data={"a": "1"})
    found = await tenants.super.there(resources.CONFIG_MAPS, "c", blue.below(namespace))
    words, labels = found["metadata"]["annotations"], found["metadata"]["labels"]
    assert words["tenancy.x-k8s.io/cluster"] == blue.key
    assert words["tenancy.x-k8s.io/uid"] == made["metadata"]["uid"]
    assert words["tenancy.x-k8s.io/namespace"] == namespace
    assert (words["tenancy.x-k8s.io/vcname"], labels["tenancy.x-k8s.io/vcname"]) == ("blue", "blue")
    assert (labels["app"], labels["app.kubernetes.io/name"]) == ("x", "x")
    assert words.keys().isdisjoint(metadata["annotations"])


async def test_two_tenants_with_the_same_names_never_meet_also_when_one_deletes_them(tenants, blue, green, namespace):
    for tenant in (blue, green):
        await tenant.make(resources.CONFIG_MAPS, "c", namespace, data={"whose": tenant.name})
        await tenant.make(resources.SECRETS, "s", namespace, stringData={"whose": tenant.name})
    for tenant in (blue, green):
        found = await tenants.super.there(resources.CONFIG_MAPS, "c", tenant.below(namespace))
        assert found["data"] == {"whose": tenant.name}
    await blue.client.delete(resources.NAMESPACES, namespace)
    await blue.gone(resources.NAMESPACES, namespace)
    await tenants.super.gone(resources.NAMESPACES, blue.below(namespace))
    for resource in (resources.CONFIG_MAPS, resources.SECRETS):
        assert await tenants.super.look(
            resource, "c" if resource is resources.CONFIG_MAPS else "s", green.below(namespace)
        )
