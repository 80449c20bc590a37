"""The number of healthy pods that a budget requires in the super cluster."""

from typing import Any

import pytest

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys
from tenants import a_link, a_pod, an_object, desired


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
        "selector": {"matchLabels": {keys.BUDGET: "web"}},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }


def test_a_pod_belongs_to_one_budget() -> None:
    def a_budget(name: str, selector: dict[str, Any] | None) -> Object:
        return an_object("PodDisruptionBudget", name, "shop", spec={"selector": selector})

    pod = a_pod(labels={"app": "web"})
    budgets = [a_budget("b", {}), a_budget("a", {"matchLabels": {"app": "web"}}), a_budget("0", None)]
    assert desired(pod, a_link(budgets)).labels[keys.BUDGET] == "a"
    assert keys.BUDGET not in desired(pod, a_link(budgets[2:])).labels
