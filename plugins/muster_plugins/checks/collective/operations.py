"""The collectives that are measured: what each sends, what must arrive, and how torch is asked for it.

Buffers are filled with numbers that tell the sender and the place in the message: position plus a shift of the
sender's own, modulo a prime, so that no chunk of a power of two looks like its neighbour. Sums of them are whole
numbers that fp32 holds exactly in any order of addition. Only functions that run in a child process import torch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from muster_plugins.checks.collective.message_sizes import ELEMENT_BYTES
from muster_plugins.checks.collective.peers import Peers

if TYPE_CHECKING:
    import torch

Name = Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv"]
"""As nccl-tests calls them: its programs are these names with `_perf` behind."""

_PERIOD = 4093
"""A prime. Sums of its numbers over 4096 ranks stay below 2^24, up to which fp32 holds every whole number."""

_APART = 61
"""How far a message to one rank is shifted from that to the next; any number that does not divide the period."""

_COMPARED_ROWS = (1 << 24) // _PERIOD
"""Repetitions of a pattern that are compared at once. CUDA counts differences in eight bytes for each element."""

_WORKING_BYTES = {"cuda": 2 << 30, "cpu": 1 << 24}
"""What a rank needs besides its buffers: to compare them, and NCCL for its own, which on nodes of eight GPUs take about
1 GiB; NVIDIA gives no figure."""

_EMPTY = -1.0
"""In no pattern: what stands where nothing has arrived."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """A collective with its buffers on one rank.

    A buffer consists of equal parts, and each part of a pattern that repeats. `received` is `sent` where torch leaves
    the result in its argument.
    """

    sent: "torch.Tensor"
    sends: Sequence["torch.Tensor"]
    received: "torch.Tensor"
    expects: Sequence["torch.Tensor"]
    run: Callable[[], object]

    def refill(self) -> None:
        """Puts in what is to be sent, and takes out what has arrived."""
        self.received.fill_(_EMPTY)
        for part, pattern in zip(self.sent.chunk(len(self.sends)), self.sends, strict=True):
            whole, rest = _tiles(part, pattern)
            whole.copy_(pattern.expand_as(whole))
            rest.copy_(pattern[: rest.numel()])

    def wrong(self) -> "torch.Tensor":
        """How many elements are not what should have arrived: a tensor, so that nobody has to wait for the device."""
        import torch  # noqa: PLC0415  only child processes may load torch

        wrong = torch.zeros((), dtype=torch.int64, device=self.received.device)
        for part, pattern in zip(self.received.chunk(len(self.expects)), self.expects, strict=True):
            whole, rest = _tiles(part, pattern)
            for rows in torch.split(whole, _COMPARED_ROWS):
                wrong += torch.count_nonzero(rows != pattern)
            wrong += torch.count_nonzero(rest != pattern[: rest.numel()])
        return wrong


def _tiles(part: "torch.Tensor", pattern: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
    """The part as rows as long as the pattern, and what is left behind the last of them."""
    whole = part.numel() // pattern.numel() * pattern.numel()
    return part[:whole].view(-1, pattern.numel()), part[whole:]


class Desk:
    """Where a rank prepares its exercises: the patterns and buffers of a message of `elements` elements in all.

    `rank` and `ranks` count the peers from 0; only torch has to be told their numbers in the whole group.
    """

    def __init__(self, peers: Peers, elements: int, torch_name: str) -> None:
        import torch  # noqa: PLC0415  only child processes may load torch

        self.peers = peers
        self.rank = peers.position
        self.ranks = range(len(peers.ranks))
        self.elements = elements
        self.each = elements // len(peers.ranks)
        self._torch_name = torch_name
        self._counting = torch.arange(2 * _PERIOD, dtype=torch.float32, device=torch_name) % _PERIOD

    def buffer(self, elements: int) -> "torch.Tensor":
        """A buffer that is not filled yet."""
        import torch  # noqa: PLC0415  only child processes may load torch

        return torch.empty(elements, dtype=torch.float32, device=self._torch_name)

    def pattern(self, sender: int, receiver: int = 0) -> "torch.Tensor":
        """What `sender` has for `receiver`."""
        return self._counting.narrow(0, (sender + _APART * receiver) % _PERIOD, _PERIOD)

    def total(self, receiver: int = 0) -> "torch.Tensor":
        """What all ranks together have for `receiver`."""
        total = self.pattern(0, receiver).clone()
        for sender in self.ranks[1:]:
            total += self.pattern(sender, receiver)
        return total

    def nothing(self) -> "torch.Tensor":
        """The pattern of a rank that has nothing to send."""
        return self._counting.new_full((_PERIOD,), _EMPTY)


def _all_reduce(desk: Desk) -> Exercise:
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    buffer, group = desk.buffer(desk.elements), desk.peers.process_group
    sends, expects = [desk.pattern(desk.rank)], [desk.total()]
    return Exercise(buffer, sends, buffer, expects, lambda: dist.all_reduce(buffer, group=group))


def _broadcast(desk: Desk) -> Exercise:
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    buffer, of_root, peers = desk.buffer(desk.elements), desk.pattern(0), desk.peers
    sends = [of_root if desk.rank == 0 else desk.nothing()]
    run = partial(dist.broadcast, buffer, src=peers.ranks[0], group=peers.process_group)
    return Exercise(buffer, sends, buffer, [of_root], run)


def _all_gather(desk: Desk) -> Exercise:
    gather = _newest("all_gather_single", "all_gather_into_tensor")
    sent, received, group = desk.buffer(desk.each), desk.buffer(desk.elements), desk.peers.process_group
    expects = [desk.pattern(sender) for sender in desk.ranks]
    return Exercise(sent, [desk.pattern(desk.rank)], received, expects, lambda: gather(received, sent, group=group))


def _reduce_scatter(desk: Desk) -> Exercise:
    scatter = _newest("reduce_scatter_single", "reduce_scatter_tensor")
    sent, received, group = desk.buffer(desk.elements), desk.buffer(desk.each), desk.peers.process_group
    sends = [desk.pattern(desk.rank, receiver) for receiver in desk.ranks]
    return Exercise(sent, sends, received, [desk.total(desk.rank)], lambda: scatter(received, sent, group=group))


def _alltoall(desk: Desk) -> Exercise:
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    sent, received, group = desk.buffer(desk.elements), desk.buffer(desk.elements), desk.peers.process_group
    sends = [desk.pattern(desk.rank, receiver) for receiver in desk.ranks]
    expects = [desk.pattern(sender, desk.rank) for sender in desk.ranks]
    return Exercise(sent, sends, received, expects, lambda: dist.all_to_all_single(received, sent, group=group))


def _sendrecv(desk: Desk) -> Exercise:
    """Each rank sends to the next one, the last to the first."""
    following, preceding = ((desk.rank + step) % len(desk.ranks) for step in (1, -1))
    sent, received = desk.buffer(desk.elements), desk.buffer(desk.elements)
    run = _point_to_point(desk, [(sent, following)], [(received, preceding)])
    return Exercise(sent, [desk.pattern(desk.rank)], received, [desk.pattern(preceding)], run)


def one_way(desk: Desk, sender: int, receiver: int) -> Exercise:
    """One rank sends to another one, which sends nothing; both call it."""
    buffer, message = desk.buffer(desk.elements), desk.pattern(sender)
    if desk.rank == sender:
        return Exercise(buffer, [message], buffer, [message], _point_to_point(desk, [(buffer, receiver)], []))
    return Exercise(buffer, [desk.nothing()], buffer, [message], _point_to_point(desk, [], [(buffer, sender)]))


_Message = tuple["torch.Tensor", int]
"""A buffer, and the rank that it goes to or comes from."""


def _point_to_point(desk: Desk, sent: list[_Message], received: list[_Message]) -> Callable[[], None]:
    """Sends and receives at the same time."""
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    ranks, group = desk.peers.ranks, desk.peers.process_group
    operations = [dist.P2POp(dist.isend, buffer, ranks[rank], group) for buffer, rank in sent]
    operations += [dist.P2POp(dist.irecv, buffer, ranks[rank], group) for buffer, rank in received]

    def run() -> None:
        for work in dist.batch_isend_irecv(operations):
            work.wait()

    return run


def _newest(name: str, before_2_13: str) -> Callable[..., Any]:
    """The function of torch.distributed by the name that this torch knows it by."""
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    found: Callable[..., Any] = getattr(dist, name, None) or getattr(dist, before_2_13)
    return found


class Operation(NamedTuple):
    """A collective: how it is prepared, and what nccl-tests prints and calculates for it.

    busbw is algbw times `factor`, a function of the number of ranks; `split` says that a message has a part for each
    rank; `buffers` is the memory of a rank as a multiple of the message. `redop` and `root` are columns of its table.
    """

    prepare: Callable[[Desk], Exercise]
    factor: Callable[[int], float]
    buffers: int
    split: bool
    redop: str = "none"
    root: int = -1

    def elements(self, size_bytes: int, world_size: int) -> int:
        """The elements of a message of at most `size_bytes`; at least one for each rank that has a part in it."""
        parts = world_size if self.split else 1
        return max(1, size_bytes // ELEMENT_BYTES // parts) * parts

    def most_bytes(self, room_bytes: int, backend: str) -> int:
        """The largest message with which a rank can do in `room_bytes` of memory; 0 where none is small enough."""
        return max(0, int((room_bytes - _WORKING_BYTES[backend]) / self.buffers))


def _around_a_ring(world_size: int) -> float:
    return (world_size - 1) / world_size


def _there_and_back(world_size: int) -> float:
    return 2 * (world_size - 1) / world_size


def _straight(_world_size: int) -> float:
    return 1.0


OPERATIONS: dict[Name, Operation] = {
    "all_reduce": Operation(_all_reduce, _there_and_back, buffers=1, split=False, redop="sum"),
    "all_gather": Operation(_all_gather, _around_a_ring, buffers=2, split=True),
    "reduce_scatter": Operation(_reduce_scatter, _around_a_ring, buffers=2, split=True, redop="sum"),
    "alltoall": Operation(_alltoall, _around_a_ring, buffers=2, split=True),
    "broadcast": Operation(_broadcast, _straight, buffers=1, split=False, root=0),
    "sendrecv": Operation(_sendrecv, _straight, buffers=2, split=False),
}
"""Factors and sizes as in the source of NVIDIA/nccl-tests."""
