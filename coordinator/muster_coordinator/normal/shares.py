"""Limits the number of devices of one node that count in a comparison of the fleet."""

from muster_coordinator.normal.ranked import Ranked


class Shares:
    """Each node counts with `each` devices at most, which is the (lower) median of the nodes' devices.

    A node may announce any number of devices and report any numbers for them. Example: of four nodes three have 8
    devices and a liar announces 128. Without the limit the liar would be most of the fleet, and the honest nodes out of
    line. With it each counts with 8. A replacement takes time in proportion to the nodes, as an insertion into a list
    does.
    """

    def __init__(self) -> None:
        self.each = 1
        self._sizes = Ranked()

    def replace(self, before: int, after: int) -> bool:
        """Notes the former and present number of devices of a node. Returns whether `each` has changed."""
        self._sizes.replace(before or None, after or None)
        sizes = self._sizes.values
        usual = int(sizes[(len(sizes) - 1) // 2]) if sizes else 1
        changed, self.each = usual != self.each, usual
        return changed
