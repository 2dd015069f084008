"""Runs the stand-in as a process of its own, until it is told to end or its parent does.

It prints one line of JSON when it listens: `kubeconfig` of the cluster's administrator, `url`, and where it takes
orders, `control`.
"""

import argparse
import asyncio
import ctypes
import json
import signal
from pathlib import Path

from benchmarks.kubernetes_standin.control import Control
from benchmarks.kubernetes_standin.server import StandIn

from muster_coordinator.local.processes import PR_SET_PDEATHSIG


def main() -> None:
    """The command line: `python -m benchmarks.kubernetes_standin DIRECTORY --nodes 100`."""
    parser = argparse.ArgumentParser(prog="kubernetes_standin", description=__doc__)
    parser.add_argument("directory", type=Path, help="for certificates and kubeconfigs")
    parser.add_argument("--nodes", type=int, default=0, help="nodes at the start, named node-00000 and on")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    asyncio.run(_run(options.directory, options.nodes))


async def _run(directory: Path, nodes: int) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with StandIn(directory) as standin, Control(standin) as control:
        for number in range(nodes):
            standin.add_node(f"node-{number:05}")
        ready = {"kubeconfig": str(standin.kubeconfig()), "url": standin.url, "control": control.url}
        print(json.dumps(ready), flush=True)
        await ended.wait()


if __name__ == "__main__":
    main()
