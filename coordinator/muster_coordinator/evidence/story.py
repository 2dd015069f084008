"""Writes the entries of nodes' stories."""

from collections.abc import Iterable

from muster.model import Json
from muster.wire.messages import PluginInfo
from muster_coordinator.model.events import AppendStory, FleetCommand
from muster_coordinator.model.nodes import NodeFinding, StoryEntry
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.quarantine_events import Note


class Story:
    """Writes the entries of all stories. Each entry gets its own id."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders

    def tell(
        self, node: str, kind: str, text: str, cause: str | None, now: float, *, data: Json | None = None
    ) -> FleetCommand:
        """The next entry in a node's story."""
        entry = StoryEntry(
            id=self._orders.new_id(), at=now, node=node, kind=kind, text=text, cause=cause, data=data or {}
        )
        return AppendStory(entry)

    def append(self, note: Note, now: float) -> FleetCommand:
        """The entry that the quarantine requests."""
        return self.tell(note.node, note.about, note.text, note.cause, now, data=note.data)

    def found(self, node: str, kind: str, finding: NodeFinding, cause: str, now: float) -> FleetCommand:
        """The entry for a finding, with its evidence."""
        return self.tell(node, kind, _named(finding), cause, now, data=finding.evidence)

    def not_loaded(
        self, node: str, before: Iterable[PluginInfo], after: Iterable[PluginInfo], cause: str, now: float
    ) -> list[FleetCommand]:
        """The entries for plugins that did not load, without those that did not before."""
        failed_before = {plugin.name for plugin in before if plugin.status == "failed"}
        return [
            self.tell(node, "plugin_failed", f"{plugin.name} did not load: {plugin.error}", cause, now)
            for plugin in after
            if plugin.status == "failed" and plugin.name not in failed_before
        ]

    def compared(
        self, node: str, before: Iterable[NodeFinding], after: Iterable[NodeFinding], cause: str, now: float
    ) -> list[FleetCommand]:
        """The entries for findings of a comparison that are new, and for those that ended."""
        was = {(finding.code, finding.device): finding for finding in before}
        now_is = {(finding.code, finding.device): finding for finding in after}
        new = [finding for key, finding in now_is.items() if key not in was]
        gone = [finding for key, finding in was.items() if key not in now_is]
        return [
            *(self.found(node, "out_of_line", finding, cause, now) for finding in new),
            *(self.tell(node, "no_longer", f"no longer: {_named(finding)}", cause, now) for finding in gone),
        ]


def _named(finding: NodeFinding) -> str:
    """A finding in one line."""
    device = "" if finding.device is None else f"device {finding.device}: "
    return f"{finding.code}: {device}{finding.summary}"
