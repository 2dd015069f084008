"""Rounds of a collective on one rank: refill the buffers, wait for all ranks, run, check every element.

On GPUs, the device's own clock measures the times, and the host waits for the device only at the end of a round.
Therefore the time to launch the collective does not count.
"""

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from muster_plugins.checks.collective.operations import PreparedCollective
from muster_plugins.checks.collective.peers import Peers
from muster_plugins.shared.torch_device import Place, settle

if TYPE_CHECKING:
    import torch


_HELD_CYCLES = 400_000
"""0.2 ms or more at the 2 GHz of today's devices: several times longer than two calls of a collective."""


class Rounds(NamedTuple):
    """Seconds that a rank measured, by round: the collective, the wait for the others before it, the work before that.

    The work is to check the last message and to prepare the next one. `wrong` counts elements.
    """

    seconds: list[float]
    waited: list[float]
    computed: list[float]
    wrong: int


def run_rounds(collective: PreparedCollective, peers: Peers, place: Place, iterations: int, warmup: int) -> Rounds:
    """Runs the rounds with all `peers` and returns the measured ones. Elements of `warmup` rounds are checked, too."""
    import torch  # noqa: PLC0415  only child processes may load torch

    clock: _Clock = _DeviceClock(peers, place.torch_name) if place.backend == "cuda" else _HostClock(peers)
    wrong = torch.zeros((), dtype=torch.int64, device=place.torch_name)
    marks = []
    ended = clock.now()
    for _ in range(warmup + iterations):
        freed = ended
        collective.refill()
        refilled = clock.now()
        clock.hold()
        arrived = clock.now()
        clock.meet()
        started = clock.now()
        collective.run()
        ended = clock.now()
        marks.append((freed, refilled, arrived, started, ended))
        wrong += collective.wrong()
        settle(place)  # Otherwise NCCL's timeout would already run for rounds that are still in the queue.
    times = [[clock.between(*pair) for pair in pairwise(each)] for each in marks[warmup:]]
    computed, _, waited, seconds = (list(column) for column in zip(*times, strict=True))
    return Rounds(seconds, waited, computed, int(wrong))


def last_arrivals(waited: list[float], peers: Peers, place: Place) -> int:
    """In how many rounds this rank came last, because no peer waited for a shorter time.

    All peers must call it at the same time.
    """
    import torch  # noqa: PLC0415  only child processes may load torch
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    mine = torch.tensor(waited, dtype=torch.float64, device=place.torch_name)
    least = mine.clone()
    dist.all_reduce(least, op=dist.ReduceOp.MIN, group=peers.process_group)
    return int((mine == least).sum())


class _Clock(Protocol):
    """`now` returns a mark, `between` the seconds between two marks, and `meet` waits until all peers call it.

    `hold` stops the device until the host has queued the work whose time is measured.
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
    """For asynchronous work on a GPU. The peers meet in a tiny all-reduce, for which the host does not wait."""

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
