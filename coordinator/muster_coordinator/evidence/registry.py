"""The nodes of the fleet: the known nodes, the evidence about each, and the entries of their stories.

Each change returns commands: store the record of the node, announce its view, and add an entry to its story with the id
of the cause.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from muster.model import Json, Run, ServiceState
from muster.wire.messages import InventoryReport, Report
from muster_coordinator.evidence.definitions import Announcements
from muster_coordinator.evidence.health import Held, conviction, held_findings
from muster_coordinator.evidence.heartbeats import Heartbeats
from muster_coordinator.evidence.misconduct import Conduct, finding_of
from muster_coordinator.evidence.node import Node
from muster_coordinator.evidence.places import Places, learned_places
from muster_coordinator.evidence.quarantine_news import QuarantineNews
from muster_coordinator.evidence.shared_values import SharedValues
from muster_coordinator.evidence.story import Story
from muster_coordinator.model.events import Announce, Command, LabelsSeen, PresenceSeen, SaveNode
from muster_coordinator.model.nodes import Misconduct, NodeRecord, NodeView
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.sweep_records import FailedNode, SweepRecord
from muster_coordinator.normal.baselines import Baselines, ComparedRun
from muster_coordinator.topology.learned import LearnedLeaf, MeasuredPair

Announced = TypeVar("Announced", InventoryReport, NodeRecord)


class NodeRegistry:
    """All known nodes by name (`nodes`), and the `baselines` that they are compared with.

    `heartbeats` tell which nodes are lost. `story` writes the entries of stories. `domain` is the level of the topology
    at which nodes fail together. `news` are events for the quarantine.
    """

    def __init__(self, orders: Orders, heartbeat_s: float, places: Places, domain: str) -> None:
        self.nodes: dict[str, Node] = {}
        self.baselines = Baselines()
        self._announced = Announcements()
        self._definitions = SharedValues()
        self.heartbeats = Heartbeats(heartbeat_s)
        self.story = Story(orders)
        self._conduct = Conduct()
        self._orders = orders
        self._places = places
        self.news = QuarantineNews(self.nodes, self._announced, domain)
        self._types: Counter[str | None] | None = None
        self._gone: dict[str, float] = {}  # the time when each forgotten node was forgotten, until it is heard again

    def restore(self, records: Iterable[NodeRecord], runs: Iterable[Run], now: float) -> list[Command]:
        """Restores stored nodes and their last runs, and compares the runs by the stored baselines.

        A node that was online has three heartbeats' time to be heard again.
        """
        for record in records:
            if record.gone:
                self._gone[record.name] = record.forgotten_at
            else:
                node = self.nodes[record.name] = Node.from_record(self._with_shared(record))
                node.backlog_before = now
                self._announced.replace((), node.checks.values())
        commands: list[Command] = []
        for run in self._counting(runs):
            node = self.nodes[run.node]
            node.evidence.add(run, node.uuids)
            compared = self._observe(run, min(run.started_at, now))
            for (name, subject), findings in held_findings(compared.held, run, self._uuids_of).items():
                self.nodes[name].evidence.compare(subject, findings)
            commands += compared.commands
        for node in self.nodes.values():
            self._places.locate(node)
            node.health = node.evidence.health
            if node.online:
                self.heartbeats.note(node.name, now)
        return commands

    def view(self, node: Node, now: float) -> NodeView:
        return node.view(lost=self.heartbeats.is_lost(node.name, now))

    def hear(self, name: str, cause: str, now: float) -> list[Command]:
        """Notes that a node was heard. A new node becomes known."""
        self.heartbeats.note(name, now)
        node = self.nodes.get(name)
        if node is not None and node.online:
            node.last_seen = now
            if not node.is_heard:
                node.is_heard = True
                self.news.note_heard(node)
            return []
        if node is None:
            node = self.nodes[name] = Node(name, now, now, forgotten_at=self._gone.pop(name, 0.0))
            self._types = None
            self._places.locate(node)
            told = self.story.tell(name, "joined", "heard for the first time", cause, now)
        else:
            told = self.story.tell(name, "back", f"heard again after {now - node.last_seen:.0f} s", cause, now)
            node.online, node.last_seen, node.is_heard, node.backlog_before = True, now, True, now
        self.news.note_heard(node)
        self.news.note_details(node)
        return [told, *self._changed(node, now)]

    def outdate(self, now: float) -> None:
        """Notes that no node could be heard until now: newer runs of each node are still in its outbox."""
        for node in self.nodes.values():
            node.is_heard, node.backlog_before = False, now

    def lose(self, name: str, text: str, cause: str | None, now: float) -> list[Command]:
        """Notes that a node is lost."""
        self.heartbeats.give_up(name)
        node = self.nodes[name]
        node.online = False
        self.news.note_lost(node)
        return [self.story.tell(name, "lost", text, cause, now), *self._changed(node, now)]

    def forget(self, name: str, now: float) -> list[Command]:
        """Forgets a node that has left. If it is heard again, it is a new node."""
        node = self.nodes.pop(name)
        self._announced.replace(node.checks.values(), ())
        self._conduct.forget(name)
        self._types = None
        self._gone[name] = node.forgotten_at = now
        return [SaveNode(node.record().model_copy(update={"gone": True})), *self.baselines.forget(name)]

    def renew(self, name: str, cause: str, now: float) -> list[Command]:
        """Treats a node that had left and was heard again as a new node."""
        node = self.nodes[name]
        node.drop_evidence(now)
        self._conduct.forget(name)
        self.news.note_heard(node)
        self.news.note_details(node)
        told = self.story.tell(name, "joined", "had left the fleet; treated as a new node", cause, now)
        return [told, *self.baselines.forget(name), *self._changed(node, now)]

    def erase(self, name: str) -> list[Command]:
        """Deletes everything about a node."""
        if (node := self.nodes.pop(name, None)) is not None:
            self._announced.replace(node.checks.values(), ())
        self._conduct.forget(name)
        self._types = None
        self._gone.pop(name, None)
        return self.baselines.forget(name)

    def has_left(self, name: str) -> bool:
        """Whether a node was forgotten and not heard since."""
        return name in self._gone

    def equip(self, message: InventoryReport, now: float) -> list[Command]:
        """Notes the inventory, checks and plugins of a node."""
        node, message = self.nodes[message.node], self._with_shared(message)
        failed_before = {plugin.name for plugin in node.plugins if plugin.status == "failed"}
        before = node.checks
        if not node.note_inventory(message):
            return []
        self._announced.replace(before.values(), node.checks.values())
        self._types = None
        told = [
            self.story.tell(node.name, "plugin_failed", f"{plugin.name} did not load: {plugin.error}", message.id, now)
            for plugin in message.plugins
            if plugin.status == "failed" and plugin.name not in failed_before
        ]
        self.news.note_details(node)
        return [*told, *self._changed(node, now)]

    def label(self, event: LabelsSeen, now: float) -> list[Command]:
        """Notes the labels that a scheduler has on a node. Labels of an unknown node wait until it is known."""
        node = self.nodes.get(event.node)
        if node is None:
            self._places.keep(event)
            return []
        if not self._places.relabel(node, event):
            return []
        self.news.note_description(node)
        return self._changed(node, now)

    def note_presence(self, event: PresenceSeen) -> None:
        """Notes an agent's data about its outbox. Data that the broker retained is old: runs may wait since then."""
        node = self.nodes[event.message.node]
        node.note_presence(event.message)
        if node.backlog_before is not None and not event.kept and event.message.outbox == 0:
            node.backlog_before = None
            self.news.note_evidence(node)

    def note_clock(self, message: Report, now: float) -> list[Command]:
        """Compares a node's clock with ours. The story says when it turns wrong or right."""
        node = self.nodes[message.node]
        text = node.clock.heard(message.sent_at, now)
        if text is None:
            return []
        return [self.story.tell(node.name, "clock", text, message.id, now), *self._changed(node, now)]

    def note_misconduct(self, name: str, kind: Misconduct, detail: str, cause: str, now: float) -> list[Command]:
        """Notes misconduct of a node's agent. The story has only the first until the agent has behaved for a while."""
        if name not in self.nodes or not self._conduct.note(name, kind, now):
            return []
        finding = finding_of(kind, detail, cause, now)
        node = self.nodes[name]
        node.evidence.add_misconduct(finding)
        return [self.story.found(name, "misconduct", finding, cause, now), *self._judge(node, cause, now)]

    def clear_misconduct(self, cause: str, now: float) -> list[Command]:
        """Clears the misconduct of agents that have behaved for a while."""
        commands: list[Command] = []
        for name, kind in self._conduct.take_quiet(now):
            node = self.nodes[name]
            node.evidence.remove_misconduct(kind)
            commands += [
                self.story.tell(name, "no_longer", f"no longer: {kind}", cause, now),
                *self._judge(node, cause, now),
            ]
        return commands

    def add_run(self, run: Run, now: float) -> list[Command]:
        """Adds a run as evidence about its node, and about the nodes that it is compared with.

        Its start is by the coordinator's clock.
        """
        node = self.nodes[run.node]
        if run.started_at < node.forgotten_at:
            return []
        was_complete = node.backlog_before is None
        node.note_delivery(run, now)
        commands = self._add_run(node, run, now)
        is_complete = node.backlog_before is None
        if is_complete is not was_complete:
            self.news.note_evidence(node)
        if not is_complete:
            self.news.note_delivered(node.name, run.started_at)
        return commands

    def _add_run(self, node: Node, run: Run, now: float) -> list[Command]:
        changed = node.evidence.add(run, node.uuids)
        told = self._tell_found(run, now) if changed else []
        compared = self._observe(run, now)
        if not compared.held:  # most runs are not compared
            return [*told, *(self._judge(node, run.id, now) if changed else self._examine(node))]
        held = held_findings(compared.held, run, self._uuids_of)
        return [*told, *compared.commands, *self._conclude({run.node} if changed else set(), held, run.id, now)]

    def reset_baseline(self, baseline: str, cause: str, now: float) -> list[Command]:
        """Resets a baseline: the present values of its devices are normal. Raises Refused for an unknown baseline."""
        compared = self.baselines.reset(baseline, now)
        return [*compared.commands, *self._conclude(set(), dict.fromkeys(compared.held, ()), cause, now)]

    def take_findings(self, record: SweepRecord, now: float) -> list[Command]:
        """Adds the findings of a sweep that has ended as evidence about its nodes."""
        commands: list[Command] = []
        for failed in record.failed_nodes:
            commands += self._convict(failed, record, now)
        for name in record.cleared_nodes:
            commands += self._clear(name, record, now)
        for link in record.failed_links:
            text = f"the link between {' and '.join(link.between)} failed: {'; '.join(link.reasons)}"
            commands += [self.story.tell(name, "link_failed", text, record.id, now) for name in link.between]
        text = f"a sweep with {record.check} could neither clear nor convict it"
        return commands + [self.story.tell(name, "inconclusive", text, record.id, now) for name in record.inconclusive]

    def learn_leaves(self, pairs: list[MeasuredPair], cause: str, now: float) -> list[Command]:
        """Learns which nodes share a leaf from the bandwidth of the pairs of a sweep."""
        learned = learned_places(self.nodes, pairs)
        return [command for name, leaf in learned for command in self._place(self.nodes[name], leaf, cause, now)]

    def _place(self, node: Node, leaf: LearnedLeaf, cause: str, now: float) -> list[Command]:
        node.learned_leaf = leaf.name
        return [self.story.tell(node.name, "place", f"is at leaf {leaf}", cause, now), *self._changed(node, now)]

    def _with_shared(self, announced: Announced) -> Announced:
        """The same with the objects that all nodes share for equal checks and plugins."""
        share = self._definitions.shared
        update = {"checks": tuple(map(share, announced.checks)), "plugins": tuple(map(share, announced.plugins))}
        return announced.model_copy(update=update)

    def _counting(self, runs: Iterable[Run]) -> Iterator[Run]:
        """The stored runs of known nodes, without runs from before a node was forgotten."""
        for run in runs:
            node = self.nodes.get(run.node)
            if node is not None and run.started_at - (node.clock.ahead_s or 0.0) >= node.forgotten_at:
                yield run

    def _observe(self, run: Run, now: float) -> ComparedRun:
        node = self.nodes[run.node]
        metrics = self._announced.compared(run.check) if run.check in node.checks else {}
        alike = self._machine_types[node.inventory.machine_type]
        return self.baselines.observe(run, metrics, node.inventory, now, alike=alike)

    def _uuids_of(self, name: str) -> Mapping[int, str]:
        return self.nodes[name].uuids

    @property
    def _machine_types(self) -> Counter[str | None]:
        """The number of nodes of each machine type, counted again when it may have changed."""
        if self._types is None:
            self._types = Counter(node.inventory.machine_type for node in self.nodes.values())
        return self._types

    def _tell_found(self, run: Run, now: float) -> list[Command]:
        """The story entries for findings of a run that did not stand against its node before."""
        findings = self.nodes[run.node].evidence.checks[run.check].findings
        new = (finding for finding in findings if finding.run == run.id and finding.runs == 1)
        return [self.story.found(run.node, "found", finding, run.id, now) for finding in new]

    def _conclude(self, changed: set[str], held: Held, cause: str, now: float) -> list[Command]:
        """Notes the findings of comparisons, and updates the health of every changed node."""
        told: list[Command] = []
        for (name, subject), findings in held.items():
            evidence = self.nodes[name].evidence
            before = evidence.compare(subject, findings)
            if before is not None:
                changed.add(name)
                told += self.story.compared(name, before, evidence.comparisons.get(subject, ()), cause, now)
        return told + [command for name in sorted(changed) for command in self._judge(self.nodes[name], cause, now)]

    def _convict(self, failed: FailedNode, record: SweepRecord, now: float) -> list[Command]:
        node, finding = self.nodes[failed.node], conviction(failed, record, now)
        node.evidence.convict(finding)
        text = f"convicted by a sweep with {record.check}: {finding.summary}"
        told = self.story.tell(node.name, "convicted", text, record.id, now)
        return [told, SaveNode(node.record()), *self._judge(node, record.id, now)]

    def _clear(self, name: str, record: SweepRecord, now: float) -> list[Command]:
        node = self.nodes[name]
        told = self.story.tell(name, "cleared", f"cleared by a sweep with {record.check}", record.id, now)
        if not node.evidence.clear(record.check):
            return [told]
        return [told, SaveNode(node.record()), *self._judge(node, record.id, now)]

    def _judge(self, node: Node, cause: str, now: float) -> list[Command]:
        """Updates the health of a node after its evidence has changed."""
        commands: list[Command] = []
        before, node.health = node.health, node.evidence.health
        if node.health is not before:
            because = "; ".join(node.evidence.reasons) or "everything passes"
            findings = sorted({finding.code for finding in node.evidence.findings})
            data: Json = {"before": before, "after": node.health, "findings": [*findings]}
            text = f"{before} to {node.health}: {because}"
            commands.append(self.story.tell(node.name, "health", text, cause, now, data=data))
        self.news.note_evidence(node)
        return [*commands, Announce("node", self.view(node, now))]

    def _examine(self, node: Node) -> list[Command]:
        """Reports that a check of a new node has reported, without a change of evidence."""
        if node.service is ServiceState.ACCEPTING:
            self.news.note_evidence(node)
        return []

    def _changed(self, node: Node, now: float) -> list[Command]:
        return [SaveNode(node.record()), Announce("node", self.view(node, now))]
