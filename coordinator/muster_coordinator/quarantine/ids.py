"""The ids that the quarantine gives to transitions, tests and requests."""

from muster.model import Name


class Ids:
    """New ids. The `epoch` of the leadership makes them unique; a replay gives the same ones."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._count = 0

    def new(self, kind: str) -> Name:
        """A new id; its first letter, `kind`, tells people what it is about."""
        self._count += 1
        return f"{kind}{self._epoch}-{self._count}"
