"""Rounds of a collective on one rank: refill, wait for everybody, run, check every element.

On GPUs the device's own clock takes the times, and the host waits for the device only when a round is over, so that
what it costs to launch the collective does not count.
"""

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from muster_plugins.checks.collective.operations import Exercise
from muster_plugins.checks.collective.peers import Peers
from muster_plugins.shared.torch_device import Place, settle

if TYPE_CHECKING:
    import torch


_HELD_CYCLES = 400_000
"""0.2 ms and more at the 2 GHz of today's devices: several times what it takes to call two collectives."""


class Rounds(NamedTuple):
    """What a rank saw, in seconds by round: the collective, the wait for the others before it, the work before that.

    The work is to check the last message and to prepare the next. `wrong` counts elements.
    """

    seconds: list[float]
    waited: list[float]
    computed: list[float]
    wrong: int


def run_rounds(exercise: Exercise, peers: Peers, place: Place, iterations: int, warmup: int) -> Rounds:
    """The measured rounds, for which all `peers` meet; the `warmup` before them are checked all the same."""
    import torch  # noqa: PLC0415  only child processes may load torch

    clock: _Clock = _DeviceClock(peers, place.torch_name) if place.backend == "cuda" else _HostClock(peers)
    wrong = torch.zeros((), dtype=torch.int64, device=place.torch_name)
    marks = []
    ended = clock.now()
    for _ in range(warmup + iterations):
        freed = ended
        exercise.refill()
        refilled = clock.now()
        clock.hold()
        arrived = clock.now()
        clock.meet()
        started = clock.now()
        exercise.run()
        ended = clock.now()
        marks.append((freed, refilled, arrived, started, ended))
        wrong += exercise.wrong()
        settle(place)  # or else NCCL's deadline would run for rounds that only stand in the queue
    times = [[clock.between(*pair) for pair in pairwise(each)] for each in marks[warmup:]]
    computed, _, waited, seconds = (list(column) for column in zip(*times, strict=True))
    return Rounds(seconds, waited, computed, int(wrong))


def last_arrivals(waited: list[float], peers: Peers, place: Place) -> int:
    """In how many rounds this rank came last: those in which no peer waited for a shorter time; alone, in none.

    All peers call it at the same time.
    """
    import torch  # noqa: PLC0415  only child processes may load torch
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    if len(peers.ranks) == 1:
        return 0
    mine = torch.tensor(waited, dtype=torch.float64, device=place.torch_name)
    least = mine.clone()
    dist.all_reduce(least, op=dist.ReduceOp.MIN, group=peers.process_group)
    return int((mine == least).sum())


class _Clock(Protocol):
    """`now` gives a mark, `between` the seconds from one to another, `meet` lets all peers go on at the same time.

    `hold` keeps the device from going on before it has been told what comes next, which is to be timed.
    """

    def now(self) -> Any: ...

    def hold(self) -> None: ...

    def meet(self) -> None: ...

    def between(self, earlier: Any, later: Any) -> float: ...


class _HostClock:
    """For work on the CPU, which is done when the call returns."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def now(self) -> float:
        return time.perf_counter()

    def hold(self) -> None:
        pass

    def meet(self) -> None:
        import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

        dist.barrier(group=self._peers.process_group)

    def between(self, earlier: float, later: float) -> float:
        return later - earlier


class _DeviceClock:
    """For work that a GPU does in its own time. The peers meet in a tiny sum, for which the host does not wait."""

    def __init__(self, peers: Peers, torch_name: str) -> None:
        import torch  # noqa: PLC0415  only child processes may load torch

        self._peers = peers
        self._beacon = torch.zeros(1, device=torch_name)

    def now(self) -> "torch.cuda.Event":
        import torch  # noqa: PLC0415  only child processes may load torch

        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch leaves it without types
        event.record()
        return event

    def hold(self) -> None:
        import torch  # noqa: PLC0415  only child processes may load torch

        torch.cuda._sleep(_HELD_CYCLES)  # type: ignore[no-untyped-call]  # torch leaves it without types

    def meet(self) -> None:
        import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

        dist.all_reduce(self._beacon, group=self._peers.process_group)

    def between(self, earlier: "torch.cuda.Event", later: "torch.cuda.Event") -> float:
        milliseconds: float = earlier.elapsed_time(later)
        return milliseconds / 1000
