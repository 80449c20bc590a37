"""A program that takes part in a leader election and works while it leads; tests freeze and end it by signals.

Each line of its output is `time word`, by the monotonic clock that all processes share; `leading` stands for a write.
"""

import asyncio
import sys
import time

from hansa.control import controller, election, manager, queue
from hansa.control.lease_timing import LeaseTiming
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from machinery import Machine

STEP = 0.01  # seconds between two writes
WORK = 1.0  # seconds for a key


def say(word: str) -> None:
    """Print a line at once."""
    print(f"{time.monotonic():.4f} {word}", flush=True)  # noqa: T201


async def main(path: str, namespace: str, identity: str) -> None:
    """Take part until SIGTERM."""
    async with Client(kubeconfig.from_files(path), user_agent=identity) as client, Machine() as machine:
        candidate = election.Election(
            "lease",
            namespace=namespace,
            identity=identity,
            client=client,
            informers=machine.informers("c", client),
            timing=LeaseTiming(lease=4, renew=2.5, retry=0.5),
            **machine.injected(),
        )

        async def write() -> None:
            while True:
                if candidate.is_leading:
                    say("leading")
                await asyncio.sleep(STEP)

        async def reconcile(key: int) -> controller.Outcome:
            say(f"begins-{key}")
            await asyncio.sleep(WORK)
            say(f"finishes-{key}")
            return controller.Done()

        work: queue.Queue[int] = queue.Queue("work", **machine.injected())
        worker = controller.Controller("work", reconcile, queue=work, metrics=machine.metrics, workers=4)
        program = manager.Manager(grace=10, **machine.injected())
        program.work(manager.Component("writing", write))
        program.work(manager.Component("worker", worker.run, drain=worker.drain))
        for key in range(1000):
            work.add(key)
        say("candidate")
        await program.run(candidate.lead)
        say("ended")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
