"""Two replicas of vc-scheduler: the leader is frozen, and the other one takes over."""

import signal

import pytest

import programs
from eventually import eventually
from pool_league import WITHIN

pytestmark = pytest.mark.timeout(400)
ELECTION = ("--leader-elect", "--leader-elect-namespace", "kube-system")


async def logged(replica, text, *, times=1):
    async def look():
        return replica.log.read_text().count(text) >= times

    await eventually(look, within=WITHIN)


async def test_another_scheduler_takes_over_from_a_leader_that_is_frozen(pool, namespace, another, tmp_path):
    await pool.stop()
    replicas = []
    try:
        for number in range(2):
            where = ("--kubeconfig", str(pool.meta.cluster.kubeconfig), "--lost-after", "4", *ELECTION)
            replicas.append(await programs.start("vc-scheduler", *where, log=tmp_path / f"{number}.log"))
            if number == 0:
                await logged(replicas[0], "became leader")
        leader, other = replicas
        await pool.namespace(namespace, {"cpu": "100m"})
        await pool.placed_somehow(namespace)
        leader.signal(signal.SIGSTOP)
        await pool.namespace(another, {"cpu": "100m"})
        await pool.placed_somehow(another)
        await logged(other, "became leader")
        leader.signal(signal.SIGCONT)
        await logged(leader, "lost leadership")
        await pool.quota(namespace, cpu="200m")
        await pool.placed_somehow(namespace)
    finally:
        for one in replicas:
            one.kill()
            await one.ended()
