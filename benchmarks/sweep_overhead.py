"""What a round of a sweep costs beyond its payload.

Claim: a sweep of 8 agents in pairs takes at most 2 s per round beyond the same payload started directly with torchrun.

Method: the payload is the measurement of the check `collective` (all-reduce over gloo on the CPU), 4 pairs side by side
on this host. In turns, each turn beginning with another one, it is started (a) as a sweep of 8 real agents through the
API of a real coordinator, from the request until the sweep has ended, divided by its rounds; (b) by 4 torchruns with 2
ranks each, until all have ended; (c) as 8 bare processes with torch's variables set, without torchrun's own start-up.
All three import torch in every rank, with one thread each. What counts is the median of the differences (a) - (b) of
the turns; (a) - (c) is given because torchrun imports torch once more for itself, which makes it slow to start.

Limits: on a host with few cores the imports of torch dominate all three, and they differ from turn to turn.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, arguments, median_of, publish
from benchmarks.fleet import BYTE_CODE, ROOT, Fleet, free_address, interpreter, mosquitto

from muster.errors import Unavailable
from muster.model import Json
from muster_coordinator.records import SweepRecord

MAX_BEYOND_S = 2.0
POLL_S = 0.02
RANKS_OF_A_PAIR = 2

SETTINGS: dict[str, Any] = {"plugins": {"disabled": ["nvml", "gemm", "training"]}}
"""Nothing else may import torch meanwhile, and no GPU of this host is used."""

VARIABLES = {
    "OMP_NUM_THREADS": "1",  # torchrun would set it for its ranks only
    "GLOO_SOCKET_IFNAME": "lo",
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # rank 0 opens the store, as it does for an agent
}

PAYLOAD = str(ROOT / "benchmarks" / "sweep_payload.py")
TORCHRUN = interpreter("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS_OF_A_PAIR), PAYLOAD)

Way = Callable[[], Awaitable[float]]


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of all turns."""
    params: Json = {"size_bytes": options.size_bytes, "iterations": options.iterations, "device": "cpu"}
    nodes = [f"node-{number}" for number in range(1, 2 * options.pairs + 1)]
    async with mosquitto(directory) as broker, Fleet(directory, broker) as fleet:
        await fleet.start_agents(*nodes, settings=SETTINGS, variables=VARIABLES)
        ways: dict[str, Way] = {
            "muster": lambda: swept(fleet, params),
            "torchrun": lambda: side_by_side(torchruns(options.pairs, params)),
            "bare": lambda: side_by_side(bare_ranks(options.pairs, params)),
        }
        return figures(await in_turns(ways, options.turns, options.warm_up))


async def in_turns(ways: dict[str, Way], turns: int, warm_up: int) -> dict[str, list[float]]:
    """Seconds of every turn by way; those that warm the disk cache before do not count."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for turn in range(1 - warm_up, turns + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            seconds = await ways[name]()
            print(f"turn {turn}  {name:8}  {seconds:6.2f} s", flush=True)
            if turn > 0:
                took[name].append(seconds)
    return took


def figures(took: dict[str, list[float]]) -> list[Figure]:
    """What each way takes, and what muster takes beyond the others."""
    beyond = {
        other: [muster - direct for muster, direct in zip(took["muster"], took[other], strict=True)]
        for other in ("torchrun", "bare")
    }
    return [
        median_of("a round of a sweep", "s", took["muster"]),
        median_of("the payload by torchrun", "s", took["torchrun"]),
        median_of("the payload by bare processes", "s", took["bare"]),
        median_of("a round beyond torchrun", "s", beyond["torchrun"], ("<=", MAX_BEYOND_S)),
        median_of("a round beyond bare processes", "s", beyond["bare"], ("<=", MAX_BEYOND_S)),
    ]


async def swept(fleet: Fleet, params: Json) -> float:
    """Seconds per round of a sweep in pairs over the whole fleet."""
    body = {"check": "collective", "strategy": "pairs", "params": params}
    began = time.monotonic()
    sweep = SweepRecord.model_validate(await asyncio.to_thread(fleet.client.post, "sweeps", body=body))
    while sweep.ended_at is None:
        await asyncio.sleep(POLL_S)
        sweep = SweepRecord.model_validate(await asyncio.to_thread(fleet.client.get, "sweeps", sweep.id))
    seconds = time.monotonic() - began
    ungrouped = [group.reasons for found in sweep.rounds for group in found.groups if group.objective is None]
    if ungrouped:
        raise Unavailable(f"groups of the sweep have measured nothing: {ungrouped}")
    return seconds / len(sweep.rounds)


def torchruns(pairs: int, params: Json) -> list[tuple[list[str], dict[str, str]]]:
    """Command line and environment of a torchrun for every pair."""
    return [([*TORCHRUN, json.dumps(params)], {}) for _ in range(pairs)]


def bare_ranks(pairs: int, params: Json) -> list[tuple[list[str], dict[str, str]]]:
    """Command line and environment of both ranks of every pair."""
    ranks = []
    for _ in range(pairs):
        host, port = free_address().split(":")
        for rank in range(RANKS_OF_A_PAIR):
            place = {"RANK": str(rank), "WORLD_SIZE": str(RANKS_OF_A_PAIR), "MASTER_ADDR": host, "MASTER_PORT": port}
            ranks.append((interpreter(PAYLOAD, json.dumps(params)), place))
    return ranks


async def side_by_side(commands: list[tuple[list[str], dict[str, str]]]) -> float:
    """Seconds from the start of the first until the end of the last."""
    began = time.monotonic()
    started = [
        await asyncio.create_subprocess_exec(*command, env=os.environ | BYTE_CODE | VARIABLES | variables)
        for command, variables in commands
    ]
    codes = await asyncio.gather(*(process.wait() for process in started))
    seconds = time.monotonic() - began
    if any(codes):
        raise Unavailable(f"the payload has failed, exit codes {codes}")
    return seconds


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=int, default=7, help="how often each way is measured")
    parser.add_argument("--warm-up", type=int, default=1, help="turns before that")
    parser.add_argument("--pairs", type=int, default=4, help="pairs side by side")
    parser.add_argument("--size-bytes", type=int, default=4 << 20, help="what is added up")
    parser.add_argument("--iterations", type=int, default=10, help="how often it is added up")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(measure(options, Path(directory)))
    publish(options, found)


if __name__ == "__main__":
    main()
