"""What our proofs and clocks cost the bandwidth that the check `collective` finds.

Claim: at every size of 1 MiB and above, the bus bandwidth that the check measures is at least 0.95 of what a minimal
loop around torch.distributed measures in the same run.

Method: the ranks are processes on this machine, with NCCL where each can have a GPU of its own and with gloo on the CPU
otherwise. Size by size they run, in turns, (a) the rounds of the check, in which every buffer is refilled, every
element is checked and all ranks wait for each other before each round, and (b) a loop that only calls all_reduce and
takes the time of each call. A turn counts the median of its rounds on rank 0; what counts of all turns is the median of
the quotients (a) / (b).

Limits: on a busy host gloo's times vary several-fold, which many turns make up for. A call of the plain loop also waits
for a rank that comes late, which the check counts apart; where ranks share their cores, the check so finds more.
"""

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, arguments, median_of, publish
from benchmarks.free_ports import free_address

from muster_plugins.checks.collective.operations import OPERATIONS, MessageBuffers
from muster_plugins.checks.collective.peers import everyone
from muster_plugins.checks.collective.rounds import run_rounds
from muster_plugins.shared.collectives.message_sizes import ELEMENT_BYTES, parse_size, series
from muster_plugins.shared.torch_device import Place, settle

if TYPE_CHECKING:
    import torch

LEAST_SHARE = 0.95

Seconds = dict[int, list[tuple[float, float]]]
"""By size, for each turn the median round of the check and of the plain loop."""


def measure(options: argparse.Namespace) -> list[Figure]:
    """The figures of all sizes."""
    host, port = free_address().split(":")
    os.environ |= {"MASTER_ADDR": host, "MASTER_PORT": port, "WORLD_SIZE": str(options.ranks)}
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    ranks = [context.Process(target=take_part, args=(rank, options, sending)) for rank in range(options.ranks)]
    for rank in ranks:
        rank.start()
    sending.close()  # so that a rank that dies ends the waiting below
    seconds: Seconds = receiving.recv()
    for rank in ranks:
        rank.join()
    return [figure for size, turns in seconds.items() for figure in figures(size, turns, options.ranks)]


def figures(size: int, turns: list[tuple[float, float]], ranks: int) -> list[Figure]:
    """Both bandwidths at one size, and how they compare."""
    factor = OPERATIONS["all_reduce"].factor(ranks)
    ours, plain = ([size * factor / turn[way] / 1e9 for turn in turns] for way in (0, 1))
    shares = [plain_s / check_s for check_s, plain_s in turns]  # of a single rank both bandwidths are 0
    name = f"{size >> 20} MiB"
    return [
        median_of(f"{name}: busbw of the check", "GB/s", ours),
        median_of(f"{name}: busbw of a plain loop", "GB/s", plain),
        median_of(f"{name}: check / plain", "", shares, (">=", LEAST_SHARE)),
    ]


def take_part(rank: int, options: argparse.Namespace, told: Connection) -> None:
    """One rank, from meeting the others to the end; rank 0 tells what it saw."""
    import torch  # noqa: PLC0415  the ranks only
    import torch.distributed as dist  # noqa: PLC0415  the ranks only

    on_gpus = torch.cuda.device_count() >= options.ranks
    place = Place(rank, f"cuda:{rank}", "") if on_gpus else Place(None, "cpu", "")
    if on_gpus:
        torch.cuda.set_device(rank)
    # Debian's torch has no libuv. Only the meeting goes through this store, and that is not measured.
    dist.init_process_group("nccl" if on_gpus else "gloo", init_method="env://?use_libuv=0", rank=rank)
    sizes = series(parse_size(options.begin), parse_size(options.end), options.factor)
    seconds = {size: in_turns(rank, size, place, options) for size in sizes}
    dist.destroy_process_group()
    if rank == 0:
        told.send(seconds)


def in_turns(rank: int, size: int, place: Place, options: argparse.Namespace) -> list[tuple[float, float]]:
    """The median seconds of both ways in every turn; each turn begins with the other one."""
    import torch  # noqa: PLC0415  the ranks only

    peers = everyone(rank, options.ranks)
    exercise = OPERATIONS["all_reduce"].prepare(MessageBuffers(peers, size // ELEMENT_BYTES, place.torch_name))
    plain = torch.ones(size // ELEMENT_BYTES, device=place.torch_name)
    ways: tuple[Callable[[], list[float]], ...] = (
        lambda: run_rounds(exercise, peers, place, options.iterations, options.warm_up).seconds,
        lambda: plain_loop(plain, place, options.iterations, options.warm_up),
    )
    turns = []
    for turn in range(options.turns):
        took = {way: statistics.median(ways[way]()) for way in ((0, 1) if turn % 2 else (1, 0))}
        turns.append((took[0], took[1]))
    return turns


def plain_loop(buffer: "torch.Tensor", place: Place, iterations: int, warm_up: int) -> list[float]:
    """Seconds of each call, as anybody would take them."""
    import torch.distributed as dist  # noqa: PLC0415  the ranks only

    seconds = []
    for _ in range(warm_up + iterations):
        settle(place)
        start = time.perf_counter()
        dist.all_reduce(buffer)
        settle(place)
        seconds.append(time.perf_counter() - start)
        buffer.fill_(1.0)  # sums of sums would soon be infinite, which is slower to add on some CPUs
    return seconds[warm_up:]


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--ranks", type=int, default=2, help="processes that take part")
    parser.add_argument("--begin", default="1M", help="the smallest message")
    parser.add_argument("--end", default="64M", help="the largest message")
    parser.add_argument("--factor", type=int, default=4, help="from one size to the next")
    parser.add_argument("--turns", type=int, default=9, help="how often each way is measured")
    parser.add_argument("--iterations", type=int, default=10, help="rounds of each turn")
    parser.add_argument("--warm-up", type=int, default=2, help="rounds before that")
    options = parser.parse_args()
    publish(options, measure(options))


if __name__ == "__main__":
    main()
