"""The process group of a check that runs on several nodes: from meeting at rank 0's store to leaving it together."""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster import Context, Rendezvous
from muster.model import Json
from muster_plugins.torch_device import Place

if TYPE_CHECKING:
    import torch
    from torch.distributed.distributed_c10d import Store


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Of the kernel that runs: containers on one host share it, two hosts never do."""


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

    def told_by_all(self, topic: str, value: Any) -> list[Any]:
        """Tells all ranks `value`, a piece of JSON, and gives what each tells about the topic, by rank."""
        return _told_by_all(self.store, topic, value, self.rank, len(self.nodes))

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


def _torch_device(place: Place) -> "torch.device":
    import torch  # noqa: PLC0415  only child processes may load torch

    return torch.device(place.torch_name)


def _introduce(store: "Store", node: str, meeting: Rendezvous, place: Place, timeout: timedelta) -> Group:
    """Every rank says where it is and what it works on: NCCL needs a GPU on each."""
    own = [node, meeting.local_rank, _host(), place.backend]
    nodes, local_ranks, hosts, backends = zip(
        *_told_by_all(store, "rank", own, meeting.rank, meeting.world_size), strict=True
    )
    return Group(
        backend="nccl" if set(backends) == {"cuda"} else "gloo",
        nodes=nodes,
        local_ranks=local_ranks,
        hosts=hosts,
        rank=meeting.rank,
        store=store,
        timeout=timeout,
    )


def _told_by_all(store: "Store", topic: str, value: Any, rank: int, world_size: int) -> list[Any]:
    store.set(f"{topic}/{rank}", json.dumps(value))
    return [json.loads(answer) for answer in store.multi_get([f"{topic}/{other}" for other in range(world_size)])]


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
