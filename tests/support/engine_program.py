"""An engine as a program that tests kill: one upper cluster, and lower ones with a virtual node each.

engine_program.py UPPER_KUBECONFIG NAME=NODE=KUBECONFIG …
"""

import asyncio
import contextlib
import sys

import engine_lab as lab
from hansa.engine.registry import Route
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig


async def main(upper: str, *lowers: str) -> None:
    """Run until killed."""
    async with contextlib.AsyncExitStack() as stack:

        async def client(path: str) -> Client:
            return await stack.enter_async_context(Client(kubeconfig.from_files(path), user_agent="hansa-killed"))

        engine = await stack.enter_async_context(lab.Engine())
        engine.join("up", await client(upper))
        for name, node, path in (lower.split("=") for lower in lowers):
            engine.join(name, await client(path))
            engine.registry.link(Route("up", name, nodes=frozenset({node})))
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
