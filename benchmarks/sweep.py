"""What a sweep costs beyond its payload, with real agents on one host and with thousands of simulated ones.

Claims:
- Formation: from the request until the last rank of a group is at its rendezvous, torch's import aside, p50 300 ms and
  p99 1 s, with 8 and with 16 agents on one host.
- A whole sweep takes at most 1.1 of the time that its payload takes without muster.
- 2,000 simulated agents in pairs are formed, run and recorded in 10 s beyond the payload.

Part `formation`: the check `noop-group` of a third-party plugin goes to its rendezvous at once, without torch, and
tells when it arrived and when it was let go, by the host's clock; then it sleeps. A real coordinator sweeps all agents
with it, in pairs and as one group, again and again. Time runs from just before the request.

Part `payload`: the payload is the measurement of the check `collective` (all-reduce over gloo on the CPU), in pairs
side by side. In turns, each turn beginning with another one, it is started (a) as a sweep through the API, from the
request until its end is in the API; (b) by a torchrun with 2 ranks for each pair, until all have ended; (c) as bare
processes with torch's variables set, without torchrun's own start-up. All three import torch in every rank, with one
thread each. What counts is the median of the quotients (a) / (b) and (a) / (c) of the turns.

Part `crowd`: the agents are simulated. Each has a real agent's decisions, outbox and MQTT connection, but no processes,
ports or disk: a rank is at its rendezvous at once and its work is a timer. Broker and coordinator are real. Time runs
from the request until the end of the sweep and the runs of all agents are in the coordinator's database.

Limits: agents, broker, coordinator and payload share the cores of one host. With few of them the imports of torch
dominate all three ways of part `payload` and differ from turn to turn; in part `crowd` the greater share goes to the
simulated agents, which would have hosts of their own.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.figures import Figure, arguments, publish
from benchmarks.sweep_crowd import crowd
from benchmarks.sweep_formation import formation
from benchmarks.sweep_payload import payload

PARTS: dict[str, Callable[[argparse.Namespace, Path], Awaitable[list[Figure]]]] = {
    "formation": formation,
    "payload": payload,
    "crowd": crowd,
}


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
    parser.add_argument("--agents", type=int, nargs="+", default=[8, 16], help="real agents on this host")
    parser.add_argument("--formations", type=int, default=100, help="groups to be formed, of each kind")
    parser.add_argument("--work-s", type=float, default=0.05, help="how long the ranks of these groups sleep")
    parser.add_argument("--turns", type=int, default=3, help="how often each way to start the payload is measured")
    parser.add_argument("--warm-up", type=int, default=1, help="turns before that")
    parser.add_argument("--size-bytes", type=int, default=4 << 20, help="what the payload adds up")
    parser.add_argument("--iterations", type=int, default=10, help="how often it adds that up")
    parser.add_argument("--crowd", type=int, default=2_000, help="simulated agents")
    parser.add_argument("--crowd-turns", type=int, default=3, help="sweeps over them")
    parser.add_argument("--crowd-work-s", type=float, default=2.0, help="how long their ranks work")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        figures = asyncio.run(measure(options, Path(directory)))
    publish(options, figures)


if __name__ == "__main__":
    main()
