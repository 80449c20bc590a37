"""tensile's mutations as the API server meets them: one webhook for new pods, constraints moved, then claims."""

import json

from hansa.admission import configuration, mutation
from hansa.admission.mutation import Operation, Request
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.modes import tensile_admission
from hansa.runtime import clock

MUTATIONS = tensile_admission.mutations(frozenset({"clusterID"}), clock.SystemClock())


def caches(**objects):
    by_name = {
        "nodes": resources.NODES,
        "claims": resources.PERSISTENT_VOLUME_CLAIMS,
        "volumes": resources.PERSISTENT_VOLUMES,
    }
    made = {name: [Object.of(one) for one in objects.get(name, ())] for name in by_name}
    return {by_name[name]: {one.key: one for one in found} for name, found in made.items()}


def mutated(pod, namespace="n", **objects):
    return mutation.mutated(Request(resources.PODS, Operation.CREATE, namespace, pod), MUTATIONS, caches(**objects))


NODE = {"metadata": {"name": "vn1", "labels": {"type": "virtual-kubelet"}}}
CLAIM = {"metadata": {"name": "c", "namespace": "n", "annotations": {"volume.kubernetes.io/selected-node": "vn1"}}}
POD = {
    "metadata": {"name": "p"},
    "spec": {
        "nodeSelector": {"disk": "ssd", "clusterID": "a"},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    },
}


def test_constraints_move_and_then_the_node_of_the_claims_is_required():
    result = mutated(POD, nodes=[NODE], claims=[CLAIM])
    assert json.loads(result["metadata"]["annotations"]["clusterSelector"]) == {"nodeSelector": {"disk": "ssd"}}
    assert result["spec"]["nodeSelector"] == {"clusterID": "a", "kubernetes.io/hostname": "vn1"}
    assert mutated(result, nodes=[NODE], claims=[CLAIM]) == result


def test_exempt_pods_stay_as_they_are():
    assert mutated(POD, namespace="kube-system") == POD


def test_the_configuration_is_the_one_that_hansa_has_always_installed():
    made = configuration.of(MUTATIONS, "https://127.0.0.1:1/mutate", ca=b"x")
    assert made.name == "hansa-cluster-selector"
    [webhook] = made.get("webhooks")
    assert webhook == {
        "name": "cluster-selector.hansa.dev",
        "clientConfig": {"url": "https://127.0.0.1:1/mutate", "caBundle": "eA=="},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "Namespaced",
            }
        ],
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]},
                {"key": "hansa.dev/webhook", "operator": "NotIn", "values": ["off"]},
            ]
        },
        "objectSelector": {
            "matchExpressions": [
                {"key": "hansa.dev/webhook", "operator": "NotIn", "values": ["off"]},
                {"key": "create-by-descheduler", "operator": "NotIn", "values": ["true"]},
            ]
        },
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "timeoutSeconds": 5,
    }
