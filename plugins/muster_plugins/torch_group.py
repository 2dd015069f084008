"""The process group of a check that runs on several nodes: from meeting at rank 0's store to leaving it together."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from muster import Context, Rendezvous
from muster_plugins.torch_device import Place

if TYPE_CHECKING:
    import torch
    from torch.distributed.distributed_c10d import Store


class Group(NamedTuple):
    """What the ranks have told each other before they start: `nodes` are the names of theirs, by rank."""

    backend: str
    nodes: tuple[str, ...]


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
    group = _introduce(store, context.node, meeting, place)
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


def _introduce(store: "Store", node: str, meeting: Rendezvous, place: Place) -> Group:
    """Every rank says where it is and what it works on: NCCL needs a GPU on each."""
    store.set(f"rank/{meeting.rank}", json.dumps([node, place.backend]))
    answers = [json.loads(answer) for answer in store.multi_get([f"rank/{rank}" for rank in range(meeting.world_size)])]
    everywhere_cuda = all(backend == "cuda" for _, backend in answers)
    return Group(backend="nccl" if everywhere_cuda else "gloo", nodes=tuple(node for node, _ in answers))


def _leave(store: "Store", meeting: Rendezvous) -> None:
    """Rank 0 goes last: the store that the others may still speak to dies with it."""
    store.set(f"left/{meeting.rank}", "")
    if meeting.rank == 0:
        store.wait([f"left/{rank}" for rank in range(meeting.world_size)])
