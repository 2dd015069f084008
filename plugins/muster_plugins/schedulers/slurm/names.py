"""By which names Slurm knows the nodes of muster."""

from collections.abc import Mapping


class Names:
    """Translates names of nodes.

    `exceptions` maps names in muster to names in Slurm; all other names in muster are Slurm's with `domain` behind.
    """

    def __init__(self, domain: str, exceptions: Mapping[str, str]) -> None:
        self._domain = domain
        self._slurms = exceptions
        self._musters = {theirs: ours for ours, theirs in exceptions.items()}

    def in_slurm(self, node: str) -> str | None:
        """What Slurm calls this node of muster; None when no node of Slurm is called so here."""
        name = self._slurms.get(node) or node.removesuffix(self._domain)
        return name if self.in_muster(name) == node else None

    def in_muster(self, node: str) -> str:
        """What muster calls this node of Slurm."""
        return self._musters.get(node) or node + self._domain
