"""The ranks that run a collective together: all ranks of a group, or some of them."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class Peers(NamedTuple):
    """Ranks that run a collective together, from the point of view of one of them.

    `ranks` are their numbers in the whole group, in order, and `position` is the index of this rank among them.
    `process_group` is their process group; None means that of the whole group.
    """

    position: int
    ranks: tuple[int, ...]
    process_group: "ProcessGroup | None" = None


def everyone(rank: int, world_size: int) -> Peers:
    """All ranks of a group, from the point of view of `rank`."""
    return Peers(rank, tuple(range(world_size)))
