"""Who runs a collective together: all ranks of a group, or some of them."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class Peers(NamedTuple):
    """Ranks that run a collective together, as one of them sees them.

    `ranks` are their numbers in the whole group, in order, and `position` is where this one stands among them.
    `process_group` is theirs; None stands for that of the whole group.
    """

    position: int
    ranks: tuple[int, ...]
    process_group: "ProcessGroup | None" = None


def everyone(rank: int, world_size: int) -> Peers:
    """All ranks of a group, as `rank` sees them."""
    return Peers(rank, tuple(range(world_size)))
