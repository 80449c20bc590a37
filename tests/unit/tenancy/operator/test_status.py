"""The status of a VirtualCluster."""

import datetime

from hansa.kube.objects import Object
from hansa.tenancy import api
from hansa.tenancy.api import ConditionType, Phase
from hansa.tenancy.operator import status

NOW = datetime.datetime(2030, 1, 1, 12, 0, tzinfo=datetime.UTC)
LATER = NOW + datetime.timedelta(hours=1)


def a_vc(**fields):
    metadata = {"name": "vc", "namespace": "ns", "uid": "d64ea0c0-91f8-46f5-8643-c0cab32ab0cd", "generation": 3}
    return api.virtual_cluster(
        Object.of({"metadata": metadata, "spec": {"clusterVersionName": "cv"}, "status": fields})
    )


def reported(vc, report, now=NOW):
    """The VirtualCluster after its status was written."""
    patch = status.patch(vc, report, now)
    return a_vc(**{**vc.object.status, **patch.get("status", {})})


def test_the_key_of_the_reference_becomes_the_namespace():
    assert reported(a_vc(), status.running(is_upgraded=False)).status.cluster_namespace == "ns-fd1b34-vc"


def test_saying_the_same_again_writes_nothing():
    vc = reported(a_vc(), status.running(is_upgraded=False))
    assert status.patch(vc, status.running(is_upgraded=False), LATER) == {}


def test_a_condition_remembers_since_when_it_holds():
    first = reported(a_vc(), status.failed(a_vc(), "no disk"))
    second = reported(first, status.failed(first, "no memory"), LATER)
    assert second.condition(ConditionType.READY).last_transition_time == "2030-01-01T12:00:00Z"
    well = reported(second, status.running(is_upgraded=False), LATER)
    assert well.condition(ConditionType.READY).last_transition_time == "2030-01-01T13:00:00Z"
    assert well.condition(ConditionType.READY).observed_generation == 3


def test_a_new_cluster_that_fails_stays_pending_unless_its_user_has_to_act():
    assert status.failed(a_vc(phase="Pending"), "x").phase == Phase.PENDING
    assert status.failed(a_vc(phase="Pending"), "x", needs_user=True).phase == Phase.ERROR


def test_one_that_runs_keeps_its_phase_whatever_fails():
    vc = a_vc(phase="Running")
    assert status.failed(vc, "x", needs_user=True).phase == Phase.RUNNING
    assert status.working(vc, "x", is_upgrade=False).phase == Phase.RUNNING
    assert status.failed(vc, "x").conditions[ConditionType.READY].status is False


def test_an_upgrade_that_fails_stays_an_upgrade():
    report = status.failed(a_vc(phase="Updating"), "x")
    assert (report.phase, report.reason) == (Phase.UPDATING, "TenantControlPlaneUpgradeFailed")


def test_messages_have_a_length_that_a_person_reads():
    vc = reported(a_vc(), status.failed(a_vc(), "x" * 5000))
    assert len(vc.status.message) == status.LONGEST_MESSAGE
