"""The policy of the descheduler: two versions of the file, and what is wrong with others."""

import pytest

from hansa.scheduling.descheduling import policy

SECOND = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictPerNode: 5
maxNoOfPodsToEvictTotal: 20
profiles:
- name: below
  pluginConfig:
  - name: RemovePodsUnschedulableBelow
    args:
      minPendingSeconds: 10
      freezeSeconds: 120
      namespaces: {include: [shop]}
      labelSelector: {matchLabels: {tier: web}}
  plugins:
    deschedule: {enabled: [RemovePodsUnschedulableBelow]}
"""
FIRST = """
apiVersion: descheduler/v1alpha1
kind: DeschedulerPolicy
strategies:
  PodLifeTime: {enabled: true, params: {maxPodLifeTimeSeconds: 180}}
"""


def test_the_second_version():
    found = policy.parse(SECOND, "policy.yaml")
    assert (found.pending_seconds, found.freeze_seconds, found.most_per_node, found.most) == (10, 120, 5, 20)
    assert (found.included, found.excluded) == ({"shop"}, {"kube-system"})
    assert (found.selector.matches({"tier": "web"}), found.selector.matches({})) == (True, False)


def test_the_version_of_tensile_kube():
    found = policy.parse(FIRST, "policy.yaml")
    assert (found.pending_seconds, found.oldest_pending_seconds) == (0, 180)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", 'apiVersion is "None"; use descheduler/v1alpha2 or descheduler/v1alpha1'),
        ("a: [", "policy.yaml is not YAML"),
        (SECOND.replace("minPendingSeconds", "minPending"), "unknown field `minPending`"),
        (SECOND.replace("[RemovePodsUnschedulableBelow]", "[LowNodeUtilization]"), '"LowNodeUtilization" is not'),
        (SECOND.replace("[RemovePodsUnschedulableBelow]", "[]"), "no profile enables a plugin"),
        (FIRST.replace("PodLifeTime", "RemoveDuplicates"), 'strategy "RemoveDuplicates" is not supported'),
        (FIRST.replace("180", "-1"), 'maxPodLifeTimeSeconds is "-1"'),
        (FIRST.replace("true", "false"), "no strategy is enabled"),
    ],
)
def test_what_is_wrong_is_said(text, message):
    with pytest.raises(policy.InvalidPolicy) as error:
        policy.parse(text, "policy.yaml")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"minPendingSeconds: 10": "minPendingSeconds: .nan"}, ">= 0"),
        ({"minPendingSeconds: 10": "minPendingSeconds: -1"}, ">= 0"),
        ({"freezeSeconds: 120": "freezeSeconds: .inf"}, "<= 31622400"),
        ({"Total: 20": "Total: -3"}, ">= 0"),
        ({"kind: DeschedulerPolicy": "kind: Policy"}, "Invalid enum value 'Policy'"),
        ({"profiles:": "profiles: &a [*a]\nothers:"}, "got `array`"),
        ({SECOND: "&a [*a]"}, 'apiVersion is "None"'),
        ({SECOND: "[" * 5000}, "nested too deeply"),
        ({"profiles:": "x: &a {y: *a}\nprofiles:"}, "unknown field"),
        ({"  plugins:": "  - {name: RemovePodsUnschedulableBelow}\n  plugins:"}, "2 times"),
    ],
)
def test_values_that_make_no_sense_are_refused_in_one_line(wrong, message):
    text = SECOND
    for old, new in wrong.items():
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(policy.InvalidPolicy) as error:
        policy.parse(text, "policy.yaml")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
