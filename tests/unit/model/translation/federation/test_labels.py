"""Labels of delegates have the prefix of the federation; a user's expression names those that don't."""

import pytest

from hansa.model import keys
from hansa.model.translation.federation import label_patterns, labels


def test_the_domain_of_a_label_is_replaced() -> None:
    relabeled = labels.of({}).labels({"app.kubernetes.io/name": "web", "app": "web", keys.HAS_FINALIZER: "true"})
    assert relabeled == {"multicluster.admiralty.io/name": "web", "multicluster.admiralty.io/app": "web"}


def test_of_two_labels_with_one_name_the_one_without_a_domain_is_used() -> None:
    both = {"name": "short", "app.kubernetes.io/name": "long"}
    assert labels.of({}).labels(both) == {"multicluster.admiralty.io/name": "short"}


def test_labels_that_match_the_expression_keep_their_key() -> None:
    relabeling = labels.of({keys.NO_PREFIX: "^kueue|=keep$"})
    given = {"kueue.x-k8s.io/queue-name": "q", "mode": "keep", "app": "web"}
    assert set(relabeling.labels(given)) == {"kueue.x-k8s.io/queue-name", "mode", "multicluster.admiralty.io/app"}


def test_selectors_select_the_delegates_of_the_pods_that_they_selected() -> None:
    selector = {
        "matchLabels": {"app": "web", "team": "red"},
        "matchExpressions": [
            {"key": "example.com/tier", "operator": "Exists"},
            {"key": "team", "operator": "In", "values": ["red"]},
        ],
    }
    assert labels.of({keys.NO_PREFIX: "^team="}).selector(selector) == {
        "matchLabels": {"multicluster.admiralty.io/app": "web", "team": "red"},
        "matchExpressions": [
            {"key": "multicluster.admiralty.io/tier", "operator": "Exists"},
            {"key": "team", "operator": "In", "values": ["red"]},
        ],
    }


SLOW = ["(a+)+$", "(?=a)", r"(a)\1", "a*b*c*d*", "[", "x" * 300, "a?" * 30 + "a" * 30, "(aa|a.)" * 30]


@pytest.mark.parametrize("pattern", SLOW)
def test_an_expression_that_may_take_long_is_refused(pattern: str) -> None:
    assert labels.check({keys.NO_PREFIX: pattern})
    with pytest.raises(label_patterns.InvalidPattern):
        labels.of({keys.NO_PREFIX: pattern})


@pytest.mark.parametrize("pattern", ["", "^app=", "app|team", r"^kueue\.x-k8s\.io/.*=.+$"])
def test_plain_expressions_are_accepted(pattern: str) -> None:
    assert labels.check({keys.NO_PREFIX: pattern}) == ""


def test_labels_that_the_source_gives_a_bound_pod_stay_there():
    bound = {"app": "web", "topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": "eu-1"}
    assert labels.of({}).labels(bound) == {"multicluster.admiralty.io/app": "web"}
