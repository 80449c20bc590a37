"""The number of healthy pods that a budget requires in the super cluster."""

import pytest

from hansa.kube import resources
from tenants import a_link, an_object, desired


@pytest.mark.parametrize(
    ("wanted", "pods", "least"),
    [(3, 5, 3), (5, 5, 4), (1, 1, 0), (1000, 5, 4), (0, 5, 0), (3, 0, 0), (3, None, 0)],
)
def test_it_is_what_the_tenants_controllers_want_but_for_one_pod_that_the_super_cluster_counts(wanted, pods, least):
    spec = {"minAvailable": "100%", "selector": {"matchLabels": {"app": "web"}}, "unhealthyPodEvictionPolicy": "x"}
    upper = an_object("PodDisruptionBudget", "web", "shop", spec=spec, status={"desiredHealthy": wanted})
    copy = an_object("PodDisruptionBudget", "web", "shop", status={"expectedPods": pods})
    lower = desired(upper, a_link(below=[] if pods is None else [copy]), resources.POD_DISRUPTION_BUDGETS)
    assert lower.spec == {
        "minAvailable": least,
        "selector": {"matchLabels": {"app": "web"}},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
