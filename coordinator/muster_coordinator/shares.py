"""How much one node counts among all: not more than the usual one."""

from muster_coordinator.ranked import Ranked


class Shares:
    """How many devices `each` node counts with at most: as many as half of all nodes have.

    A node may announce any number of devices, and measure what it likes on them. With hundreds where the others have
    eight, it alone would be most of the fleet, and all the others out of line.
    """

    def __init__(self) -> None:
        self.each = 1
        self._sizes = Ranked()

    def replace(self, before: int, after: int) -> bool:
        """Notes how many devices a node had and has; whether each counts with another number than before."""
        self._sizes.replace(before or None, after or None)
        sizes = self._sizes.values
        usual = int(sizes[(len(sizes) - 1) // 2]) if sizes else 1
        changed, self.each = usual != self.each, usual
        return changed
