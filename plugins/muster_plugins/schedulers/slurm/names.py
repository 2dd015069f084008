"""Names of nodes in muster and in Slurm."""

from collections.abc import Mapping


class Names:
    """Translates names of nodes.

    `exceptions` maps names in muster to names in Slurm. Every other name in muster is Slurm's name with `domain` added.
    """

    def __init__(self, domain: str, exceptions: Mapping[str, str]) -> None:
        self._domain = domain
        self._slurms = exceptions
        self._musters = {theirs: ours for ours, theirs in exceptions.items()}

    def in_slurm(self, node: str) -> str | None:
        """The name in Slurm of this node of muster; None if Slurm has no such node."""
        name = self._slurms.get(node) or node.removesuffix(self._domain)
        return name if self.in_muster(name) == node else None

    def in_muster(self, node: str) -> str:
        """The name in muster of this node of Slurm."""
        return self._musters.get(node) or node + self._domain
