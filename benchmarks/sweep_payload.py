"""A sweep with a real payload beside the same payload without muster: by torchrun, and as bare processes."""

import argparse
import asyncio
import json
import os
import socket
import time
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures import Figure, median_of
from benchmarks.fleet import BYTE_CODE, ROOT, Fleet, interpreter
from benchmarks.free_ports import free_port
from benchmarks.sweep_agents import VARIABLES, fleet_of

from muster.errors import Unavailable
from muster.model import Json

MAX_RATIO = 1.1
RANKS_OF_A_PAIR = 2
LOOPBACK = "127.0.0.1"

RANK = str(ROOT / "benchmarks" / "sweep_rank.py")
TORCHRUN = interpreter("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS_OF_A_PAIR), RANK)

Way = Callable[[], Awaitable[float]]


async def payload(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of every number of agents."""
    figures = []
    for agents in options.agents:
        async with fleet_of(agents, directory / str(agents)) as fleet:
            figures += compared(await in_turns(fleet, options), f"{agents} agents")
    return figures


async def in_turns(fleet: Fleet, options: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds of every turn by way, all agents in pairs; turns that warm the disk cache before do not count."""
    params: Json = {"size_bytes": options.size_bytes, "iterations": options.iterations, "device": "cpu"}
    pairs = len(fleet.agents) // RANKS_OF_A_PAIR
    ways: dict[str, Way] = {
        "muster": lambda: swept(fleet, params),
        "torchrun": lambda: side_by_side(torchruns(pairs, params)),
        "bare": lambda: side_by_side(bare_ranks(pairs, params)),
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for turn in range(1 - options.warm_up, options.turns + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            seconds = await ways[name]()
            print(f"turn {turn}  {name:8}  {seconds:6.2f} s", flush=True)
            if turn > 0:
                took[name].append(seconds)
    return took


def compared(took: dict[str, list[float]], where: str) -> list[Figure]:
    """What each way takes, and what muster takes as a share of the others, turn by turn."""
    ratios = {
        other: [muster / direct for muster, direct in zip(took["muster"], took[other], strict=True)]
        for other in ("torchrun", "bare")
    }
    return [
        median_of(f"whole sweep in pairs, {where}", "s", took["muster"]),
        median_of(f"its payload by torchrun, {where}", "s", took["torchrun"]),
        median_of(f"its payload by bare processes, {where}", "s", took["bare"]),
        median_of(f"sweep to torchrun, {where}", "ratio", ratios["torchrun"], ("<=", MAX_RATIO)),
        median_of(f"sweep to bare processes, {where}", "ratio", ratios["bare"], ("<=", MAX_RATIO)),
    ]


async def swept(fleet: Fleet, params: Json) -> float:
    """Seconds from the request for a sweep of one round, which is the payload, until its end is in the API."""
    began = time.monotonic()
    await fleet.swept(check="collective", strategy="pairs", params=params, max_rounds=1)
    return time.monotonic() - began


@dataclass(frozen=True, slots=True)
class Program:
    """What is started without muster: the arguments, what is in the environment, and a socket to be inherited."""

    command: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    listener: socket.socket | None = None

    async def start(self) -> Process:
        inherited = () if self.listener is None else (self.listener.fileno(),)
        environment = os.environ | BYTE_CODE | VARIABLES | self.variables
        with self.listener or nullcontext():
            return await asyncio.create_subprocess_exec(*self.command, env=environment, pass_fds=inherited)


def torchruns(pairs: int, params: Json) -> list[Program]:
    """A torchrun for every pair.

    torchrun draws a free port and lets go of it, and somebody else may get it before rank 0 has imported torch. So the
    ranks meet at a port that nobody else is given.
    """
    command = [*TORCHRUN, json.dumps(params)]
    return [Program(command, {"MEETING_PORT": str(free_port())}) for _ in range(pairs)]


def bare_ranks(pairs: int, params: Json) -> list[Program]:
    """Both ranks of every pair."""
    return [rank for _ in range(pairs) for rank in bare_pair(interpreter(RANK, json.dumps(params)))]


def bare_pair(command: list[str]) -> tuple[Program, Program]:
    """Rank 0 inherits its port: before it has imported torch, somebody else could take one that is free now."""
    listener = socket.create_server((LOOPBACK, 0))
    port = str(listener.getsockname()[1])
    group = {"WORLD_SIZE": str(RANKS_OF_A_PAIR), "MASTER_ADDR": LOOPBACK, "MASTER_PORT": port}
    first = Program(command, group | {"RANK": "0", "LISTEN_FD": str(listener.fileno())}, listener)
    return first, Program(command, group | {"RANK": "1"})


async def side_by_side(programs: list[Program]) -> float:
    """Seconds from the start of the first until the end of the last."""
    began = time.monotonic()
    started = [await program.start() for program in programs]
    codes = await asyncio.gather(*(process.wait() for process in started))
    seconds = time.monotonic() - began
    if any(codes):
        raise Unavailable(f"the payload has failed, exit codes {codes}")
    return seconds
