"""The process group of a check that runs on several nodes, from the meeting at rank 0's store until all ranks leave."""

import hmac
import os
import re
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import pydantic_core
from pydantic import Field, TypeAdapter, ValidationError

from muster import Context, Rendezvous
from muster.model import Json
from muster_plugins.shared.store_gate import LOOPBACK, Door, Gate, allow_connections, on_loopback, served
from muster_plugins.shared.torch_device import Place

if TYPE_CHECKING:
    import torch
    from torch.distributed.distributed_c10d import Store


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Boot id of the running kernel: containers on one host share it, two hosts never do."""


T = TypeVar("T")

MOST_VALUE_BYTES = 1 << 18
"""The largest value that a rank may send. Real ones (RankReport, NCCL's transports) have some kilobytes."""

_MOST_NAMED = 8
"""Maximum number of other nodes that the evidence names."""

_Introduction = tuple[
    Annotated[str, Field(max_length=253)],
    Annotated[int, Field(ge=0, lt=1 << 20)],
    Annotated[str, Field(max_length=64)],
    Literal["cpu", "cuda"],
]
"""A rank's node, its local rank, its host and its backend."""


class PeerError(Exception):
    """Values that other ranks sent, or did not send, made this rank fail. `evidence` names them."""

    def __init__(self, problem: str, **evidence: Any) -> None:
        super().__init__(problem)
        self.evidence: Json = evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """The group, with the nodes, local ranks and hosts of all ranks, which they exchanged at the start.

    A host is identified by the id that its kernel drew at boot; it is empty if the kernel does not report it. `timeout`
    is how long a rank waits for the others in one operation.
    """

    backend: str
    nodes: tuple[str, ...]
    local_ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    rank: int
    store: "Store"
    timeout: timedelta

    def all_gather(self, topic: str, value: T, kind: Any) -> list[T]:
        """Sends `value` to all ranks, and returns the values of all ranks about the topic, by rank.

        Values are sent as JSON. Raises PeerError if the value of a rank is not of `kind`, a type that pydantic can
        validate.
        """
        return _gather(self.store, topic, value, kind, rank=self.rank, among=range(len(self.nodes)))

    def gather_on_node(self, topic: str, value: T, kind: Any) -> list[T]:
        """As `all_gather`, but among the ranks of this rank's node only."""
        own = [rank for rank, node in enumerate(self.nodes) if node == self.nodes[self.rank]]
        return _gather(self.store, topic, value, kind, rank=self.rank, among=own)

    @property
    def others(self) -> list[str]:
        """The names of the other nodes, up to the number that evidence names."""
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
        """Facts that select references for groups, and the identity of this rank, which works on `place`."""
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
def joined(context: Context, meeting: Rendezvous, place: Place, timeout_s: float) -> Iterator[RankGroup]:
    """The process group, from the meeting at rank 0's store until every rank has left it.

    `timeout_s` is how long a rank waits for the others in one operation, in seconds.
    """
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    timeout = timedelta(seconds=min(timeout_s, context.timeout_s))
    with _guarded(meeting) as guarded:
        with _name_meeting_in_errors(meeting):
            store = _open_store(guarded, timeout)
            group = _introduce(store, context.node, meeting, place, timeout)
        device = _torch_device(place) if group.backend == "nccl" else None
        with _name_peers_in_errors(group):
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
def _guarded(meeting: Rendezvous) -> Iterator[Rendezvous]:
    """Where torch meets the others. If the group has a secret, a gate keeps strangers out (see `store_gate`)."""
    if meeting.secret is None:
        yield meeting
        return
    os.environ.setdefault("NCCL_SOCKET_MAGIC", _nccl_magic(meeting.secret))
    inner = on_loopback()
    port = inner.getsockname()[1]
    if meeting.listen_fd is None:
        with served(inner, Door(meeting.secret, meeting.master_addr, meeting.master_port).attend):
            yield replace(meeting, master_addr=LOOPBACK, master_port=port)
        return
    allow_connections(meeting.world_size)
    gate = Gate(meeting.secret, port, meeting.world_size)
    with served(socket.socket(fileno=meeting.listen_fd), gate.attend):
        try:
            yield replace(meeting, master_addr=LOOPBACK, master_port=port, listen_fd=inner.detach())
        except PeerError as error:
            # No excuse: they did not get past the gate, and a member that lies could be one of them.
            error.evidence |= {"strangers": [*gate.strangers]} if gate.strangers else {}
            raise


def _nccl_magic(secret: str) -> str:
    """The number by which NCCL's sockets know each other.

    NCCL draws a random one for its bootstrap, but a constant serves for the connections of its network plugins. Older
    versions do not read the variable. Source: user guide of NCCL 2.32, environment variables.
    """
    return f"0x{hmac.digest(bytes.fromhex(secret), b'nccl', 'sha256')[:8].hex()}"


def _open_store(meeting: Rendezvous, timeout: timedelta) -> "Store":
    """Connects to the store at rank 0, which rank 0 starts itself, with libuv if this torch has it.

    Debian builds torch without libuv, and there TCPStore raises unless it is told not to use it. Each rank decides for
    itself: both stores speak the same protocol, so a group can have ranks with libuv and ranks without it.
    """
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    open_store = partial(
        dist.TCPStore,  # type: ignore[attr-defined]  # torch documents it, but does not export it for mypy
        meeting.master_addr,
        meeting.master_port,
        meeting.world_size,
        is_master=meeting.rank == 0,
        master_listen_fd=meeting.listen_fd,
        timeout=timeout,
        wait_for_workers=False,
    )
    try:
        return open_store(use_libuv=True)
    except RuntimeError as error:
        if "without libuv" not in str(error):
            raise
    # torch checks for libuv before it takes over the listening socket, so rank 0 can still pass it on.
    return open_store(use_libuv=False)


@contextmanager
def _name_meeting_in_errors(meeting: Rendezvous) -> Iterator[None]:
    """Turns any error into a PeerError with the address of rank 0.

    Before the ranks have met, only the store at rank 0 can fail, or a rank that does not connect to it.
    """
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
def _name_peers_in_errors(group: RankGroup) -> Iterator[None]:
    """Turns errors of communication into a PeerError with the other nodes; other errors stay as they are."""
    try:
        yield
    except Exception as error:
        if not _is_of_peers(error) or not group.others:
            raise
        names = ", ".join(group.others)
        raise PeerError(f"working with {names} failed: {_in_short(error)}", peers=[*group.others]) from error


def _is_of_peers(error: Exception) -> bool:
    """Whether the error comes from communication between ranks, and not from a device."""
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    is_between_ranks = isinstance(error, dist.DistError) or _OF_GLOO.search(str(error)) is not None
    return (
        is_between_ranks and "cuda" not in _in_short(error).lower()
    )  # torch reports errors of devices as DistError, too


_OF_GLOO = re.compile(r"\bgloo/|\bgloo::|Connection (closed|reset) by peer")
"""Gloo raises a RuntimeError; its message names a file of gloo, or says that a peer closed the connection."""


def _in_short(error: Exception) -> str:
    first_line, *_ = [*str(error).splitlines(), ""]
    return f"{type(error).__name__}: {first_line}"[:300]


def _torch_device(place: Place) -> "torch.device":
    import torch  # noqa: PLC0415  only child processes may load torch

    return torch.device(place.torch_name)


def _introduce(store: "Store", node: str, meeting: Rendezvous, place: Place, timeout: timedelta) -> RankGroup:
    """The group, after each rank has told the others its node, host and backend; NCCL needs a GPU on every rank."""
    own = (node, meeting.local_rank, _host(), place.backend)
    introductions = _gather(store, "rank", own, _Introduction, rank=meeting.rank, among=range(meeting.world_size))
    nodes, local_ranks, hosts, backends = zip(*introductions, strict=True)
    return RankGroup(
        backend="nccl" if set(backends) == {"cuda"} else "gloo",
        nodes=nodes,
        local_ranks=local_ranks,
        hosts=hosts,
        rank=meeting.rank,
        store=store,
        timeout=timeout,
    )


def _gather(store: "Store", topic: str, value: T, kind: Any, *, rank: int, among: Sequence[int]) -> list[T]:
    """See `RankGroup.all_gather`: the values of the ranks `among`, of which `rank` is this one."""
    store.set(f"{topic}/{rank}", pydantic_core.to_json(value).decode())
    try:
        answers = store.multi_get([f"{topic}/{other}" for other in among])
    except MemoryError:  # torch allocates as many bytes as the store announces
        problem = f"the store at rank 0 announces more bytes about {topic!r} than this rank has memory for"
        raise PeerError(problem, peer_rank=0) from None
    adapter = TypeAdapter[T](kind)
    return [_read(adapter, answer, topic, other) for other, answer in zip(among, answers, strict=True)]


def _read(adapter: TypeAdapter[T], answer: bytes, topic: str, rank: int) -> T:
    """The value of a rank, which may have sent anything. Raises PeerError if it is not valid."""
    if len(answer) > MOST_VALUE_BYTES:
        problem = f"{len(answer)} bytes, at most {MOST_VALUE_BYTES} are allowed"
    else:
        try:
            return adapter.validate_json(answer)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
    raise PeerError(f"rank {rank} sent an invalid value about {topic!r}: {problem}", peer_rank=rank)


def _leave(store: "Store", meeting: Rendezvous) -> None:
    """Rank 0 leaves last, because the store ends with it and the others may still use the store."""
    store.set(f"left/{meeting.rank}", "")
    if meeting.rank == 0:
        store.wait([f"left/{rank}" for rank in range(meeting.world_size)])


def _host() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
