"""How soon a broken node is taken out of service, and a thousand of them at once.

Claims:
- From a fault that is fatal by nature to the call that cordons its node, p50 250 ms and p99 1 s.
- When 1,000 of 10,000 nodes break at the same time and the budget is 10 %, all is decided and stored within 2 s, 100
  nodes are cordoned in a second, as the budget says, and each of them is, exactly once.

Broker and coordinator are real, in mode enforce with the policy that comes with muster. Kubernetes is a stand-in: an
API over HTTPS whose nodes are in memory (`benchmarks/kubernetes_standin`), in the process of the benchmark.

Part `latency`: real agents have the check `breakable` of a third-party plugin, which finds a GPU lost while a file says
so. A watch wakes it, as one does the check of the kernel's log. One fault comes after the other, to the agents in turn,
at uneven times, and to each at most every 2 s, because a watch rests for a second. Time runs from the moment before the
watch is told until the patch that cordons the node arrives at the stand-in, by the clock of this host. Then the fault
is taken back and the node released, as somebody would who has repaired it.

Part `storm`: the nodes are simulated. What they say was written down beforehand as MQTT packets, and each beats every
10 s as a real one does. They are accepted by a coordinator that only observes, which is then started anew to enforce.
Time runs from the first packet of the faults, which a publisher in a process of its own sends as fast as the broker
takes them, until the database has a decision about each node: CORDONED, or HELD until the rate of the budget lets it
go. What is cordoned in a second is counted at the stand-in, from the first node to the last; a hundred may go at once.
So many nodes with the same trouble would keep all in service, and so that is switched off.

Limits: agents, broker, coordinator and the stand-in share the cores of one host, and its network has no delay. In the
storm the nodes report nothing but these faults, and the two coordinators have no history.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.figures import Figure, arguments, publish
from benchmarks.quarantine_latency import latency
from benchmarks.quarantine_storm import storm

PARTS: dict[str, Callable[[argparse.Namespace, Path], Awaitable[list[Figure]]]] = {"latency": latency, "storm": storm}


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of the parts that are wanted."""
    figures = []
    for part in options.parts:
        own = directory / part
        own.mkdir()
        figures += await PARTS[part](options, own)
    return figures


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure")
    parser.add_argument("--agents", type=int, default=4, help="real agents on this host, two or more")
    parser.add_argument("--faults", type=int, default=120, help="faults that come to them, one after the other")
    parser.add_argument("--nodes", type=int, default=10_000, help="simulated nodes")
    parser.add_argument("--broken", type=int, default=1_000, help="how many of them break at the same time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        figures = asyncio.run(measure(options, Path(directory)))
    publish(options, figures)


if __name__ == "__main__":
    main()
