"""The process group of a check that runs on several nodes: from meeting at rank 0's store to leaving it together."""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import pydantic_core
from pydantic import Field, TypeAdapter, ValidationError

from muster import Context, Rendezvous
from muster.model import Json
from muster_plugins.torch_device import Place

if TYPE_CHECKING:
    import torch
    from torch.distributed.distributed_c10d import Store


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Of the kernel that runs: containers on one host share it, two hosts never do."""


T = TypeVar("T")

MOST_TOLD_BYTES = 1 << 18
"""What a rank tells the others in one go. The most is a RankReport or the transports of NCCL: some kilobytes."""

_MOST_NAMED = 8
"""So many of the other nodes are named when one of them has ended this rank."""

_Introduction = tuple[
    Annotated[str, Field(max_length=253)],
    Annotated[int, Field(ge=0, lt=1 << 20)],
    Annotated[str, Field(max_length=64)],
    Literal["cpu", "cuda"],
]
"""A rank's node, its local rank, its host and its backend."""


class PeerError(Exception):
    """What other ranks sent, or did not send, ended this one: no fault of this node is known. `evidence` names them."""

    def __init__(self, problem: str, **evidence: Any) -> None:
        super().__init__(problem)
        self.evidence: Json = evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What the ranks have told each other before they start: by rank, their nodes, local ranks and hosts.

    A host is known by the id that its kernel drew when it booted; it is empty where the kernel does not tell. `timeout`
    is how long a rank waits for the others in one operation.
    """

    backend: str
    nodes: tuple[str, ...]
    local_ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    rank: int
    store: "Store"
    timeout: timedelta

    def told_by_all(self, topic: str, value: T, kind: Any) -> list[T]:
        """Tells all ranks `value`, a piece of JSON, and gives what each tells about the topic, by rank.

        PeerError when what a rank tells is not of `kind`, a type as pydantic takes it.
        """
        return _told_by_all(self.store, (self.rank, len(self.nodes)), topic, value, kind)

    @property
    def others(self) -> list[str]:
        """The names of the other nodes, as far as they fit into evidence."""
        own = self.nodes[self.rank]
        return [*dict.fromkeys(node for node in self.nodes if node != own)][:_MOST_NAMED]

    def wait_for(self, ranks: Collection[int], topic: str, timeout_s: float) -> None:
        """Returns when each of `ranks` has called this about `topic`; the other ranks only wait for them.

        They may have more than one operation to do before that, so the timeout in seconds is not the group's.
        """
        if self.rank in ranks and self.store.add(topic, 1) == len(ranks):
            self.store.set(f"{topic}/done", "")
        self.store.wait([f"{topic}/done"], timedelta(seconds=timeout_s))

    def facts(self, place: Place) -> Json:
        """What references for groups are chosen by, and who this rank is, which works on `place`."""
        return {
            "backend": self.backend,
            "nodes": len(set(self.nodes)),
            "world_size": len(self.nodes),
            "rank": self.rank,
            "device": place.index,
            "gpu_model": place.model,
            "simulated": place.simulated,
        }

    def nodes_that_share_a_host(self) -> list[str]:
        """The names of nodes that are on the same host as another one."""
        host_of = dict(zip(self.nodes, self.hosts, strict=True))
        hosts = [host for host in host_of.values() if host]
        return sorted(node for node, host in host_of.items() if hosts.count(host) > 1)


@contextmanager
def joined(context: Context, meeting: Rendezvous, place: Place, timeout_s: float) -> Iterator[Group]:
    """The process group, from meeting the others at rank 0's store until every rank has left it.

    `timeout_s` is how long a rank waits for the others in one operation, in seconds.
    """
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    timeout = timedelta(seconds=min(timeout_s, context.timeout_s))
    with _blamed_on_the_meeting(meeting):
        store = dist.TCPStore(  # type: ignore[attr-defined]  # torch documents it, but does not export it for mypy
            meeting.master_addr,
            meeting.master_port,
            meeting.world_size,
            is_master=meeting.rank == 0,
            master_listen_fd=meeting.listen_fd,
            timeout=timeout,
            wait_for_workers=False,
        )
        group = _introduce(store, context.node, meeting, place, timeout)
    device = _torch_device(place) if group.backend == "nccl" else None
    with _blamed_on_others(group):
        dist.init_process_group(
            group.backend,
            store=store,
            rank=meeting.rank,
            world_size=meeting.world_size,
            timeout=timeout,
            device_id=device,
        )
        try:
            yield group
        finally:
            dist.destroy_process_group()
        _leave(store, meeting)


@contextmanager
def _blamed_on_the_meeting(meeting: Rendezvous) -> Iterator[None]:
    """Until the ranks have met, nothing can fail but the store at rank 0, or a rank that does not come to it."""
    try:
        yield
    except PeerError:
        raise
    except Exception as error:
        place = f"{meeting.master_addr}:{meeting.master_port}"
        where = "this rank" if meeting.rank == 0 else f"rank 0 at {place}"
        problem = f"could not meet the others at {where}: {_in_short(error)}"
        raise PeerError(problem, meeting=place) from error


@contextmanager
def _blamed_on_others(group: Group) -> Iterator[None]:
    """What the ranks do to each other names the other nodes; what a check or a device does wrong stays as it is."""
    try:
        yield
    except Exception as error:
        if not _is_of_peers(error) or not group.others:
            raise
        names = ", ".join(group.others)
        raise PeerError(f"working with {names} failed: {_in_short(error)}", peers=[*group.others]) from error


def _is_of_peers(error: Exception) -> bool:
    """Whether the error came up between ranks, and not at a device, whose errors torch hands on as its own."""
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    between = isinstance(error, dist.DistError) or _OF_GLOO.search(str(error)) is not None
    return between and "cuda" not in _in_short(error).lower()


_OF_GLOO = re.compile(r"\bgloo/|\bgloo::|Connection (closed|reset) by peer")
"""What gloo throws is a RuntimeError that says in which of its files."""


def _in_short(error: Exception) -> str:
    first_line, *_ = [*str(error).splitlines(), ""]
    return f"{type(error).__name__}: {first_line}"[:300]


def _torch_device(place: Place) -> "torch.device":
    import torch  # noqa: PLC0415  only child processes may load torch

    return torch.device(place.torch_name)


def _introduce(store: "Store", node: str, meeting: Rendezvous, place: Place, timeout: timedelta) -> Group:
    """Every rank says where it is and what it works on: NCCL needs a GPU on each."""
    own = (node, meeting.local_rank, _host(), place.backend)
    told = _told_by_all(store, (meeting.rank, meeting.world_size), "rank", own, _Introduction)
    nodes, local_ranks, hosts, backends = zip(*told, strict=True)
    return Group(
        backend="nccl" if set(backends) == {"cuda"} else "gloo",
        nodes=nodes,
        local_ranks=local_ranks,
        hosts=hosts,
        rank=meeting.rank,
        store=store,
        timeout=timeout,
    )


def _told_by_all(store: "Store", place: tuple[int, int], topic: str, value: T, kind: Any) -> list[T]:
    """As `Group.told_by_all`; `place` is this rank and the number of ranks."""
    rank, world_size = place
    store.set(f"{topic}/{rank}", pydantic_core.to_json(value).decode())
    try:
        answers = store.multi_get([f"{topic}/{other}" for other in range(world_size)])
    except MemoryError:  # the store announces how much comes, and torch asks for that at once
        problem = f"the store at rank 0 sends more about {topic!r} than there is memory for"
        raise PeerError(problem, peer_rank=0) from None
    adapter = TypeAdapter[T](kind)
    return [_read(adapter, answer, topic, other) for other, answer in enumerate(answers)]


def _read(adapter: TypeAdapter[T], answer: bytes, topic: str, rank: int) -> T:
    """What a rank tells, which may be anything."""
    if len(answer) > MOST_TOLD_BYTES:
        problem = f"{len(answer)} bytes, at most {MOST_TOLD_BYTES} are taken"
    else:
        try:
            return adapter.validate_json(answer)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
    raise PeerError(f"rank {rank} told garbage about {topic!r}: {problem}", peer_rank=rank)


def _leave(store: "Store", meeting: Rendezvous) -> None:
    """Rank 0 goes last: the store that the others may still speak to dies with it."""
    store.set(f"left/{meeting.rank}", "")
    if meeting.rank == 0:
        store.wait([f"left/{rank}" for rank in range(meeting.world_size)])


def _host() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
