"""The nodes of the fleet: the known nodes, the evidence about each, and the entries of their stories.

Each change returns commands: store the record of the node, announce its view, and add an entry to its story with the id
of the cause.
"""

from muster.model import Health, Json, Run, ServiceState
from muster.wire.messages import Report
from muster_coordinator.evidence.definitions import Announcements
from muster_coordinator.evidence.evidence_records import DueRecords
from muster_coordinator.evidence.health import HeldFindings, held_findings
from muster_coordinator.evidence.heartbeats import Heartbeats
from muster_coordinator.evidence.misconduct import Conduct, finding_of
from muster_coordinator.evidence.node import Node
from muster_coordinator.evidence.node_counts import NodeCounts
from muster_coordinator.evidence.places import Places
from muster_coordinator.evidence.quarantine_news import QuarantineNews
from muster_coordinator.evidence.rebuilt_evidence import rebuild
from muster_coordinator.evidence.shared_values import SharedValues
from muster_coordinator.evidence.story import Story
from muster_coordinator.model.events import Announce, FleetCommand, InventorySeen, LabelsSeen, PresenceSeen, SaveNode
from muster_coordinator.model.nodes import Misconduct, NodeGone, NodeView
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.normal.baselines import Baselines, ComparedRun
from muster_coordinator.normal.stored_comparisons import StoredComparisons


class NodeRegistry:
    """All known nodes by name (`nodes`), and the `baselines` that they are compared with.

    `heartbeats` tell which nodes are lost, `counts` how many nodes of each kind there are. `story` writes the entries
    of stories. `domain` is the level of the topology at which nodes fail together. `news` are events for the
    quarantine, and `due` are records of evidence to store.
    """

    def __init__(self, orders: Orders, heartbeat_s: float, places: Places, domain: str) -> None:
        self.nodes: dict[str, Node] = {}
        self.baselines = Baselines()
        self._announced = Announcements()
        self._definitions = SharedValues()
        self.heartbeats = Heartbeats(heartbeat_s)
        self.counts = NodeCounts(self.heartbeats)
        self.story = Story(orders)
        self.due = DueRecords(self.nodes)
        self._conduct = Conduct()
        self._orders = orders
        self._places = places
        self.news = QuarantineNews(self.nodes, self._announced, domain)
        self._gone: dict[str, float] = {}  # the time when each forgotten node was forgotten, until it is heard again

    def restore(self, saved: StoredFleet, now: float) -> list[FleetCommand]:
        """Restores stored nodes with their evidence, and what they are compared with.

        A node without stored evidence is from an earlier release. Its evidence is rebuilt from its last runs. A node
        that was online is not lost before it had time to be heard (`heartbeats`).
        """
        for record in self._definitions.restored(saved.nodes):
            if record.gone:
                self._gone[record.name] = record.forgotten_at
            else:
                node = self.nodes[record.name] = Node.from_record(record, saved.tested.get(record.name, 0.0))
                node.backlog_before = now
                self.counts.count(node)
        self._announced.restore(node.checks.values() for node in self.nodes.values())
        self.baselines.restore(StoredComparisons.of(saved, self.counts.hardware_kinds))
        outdated = self.nodes.keys() - self.due.restore(saved.evidence)
        commands: list[FleetCommand] = []
        if outdated:
            due, erased = rebuild(self.nodes, outdated, saved.runs, self._observe, now)
            self.due.note_rebuilt(due, saved.runs)
            commands += [*erased, *self.baselines.records()]
        for node in sorted(self.nodes.values(), key=lambda node: node.last_seen):
            self._places.locate(node)
            node.health = node.examined_health
            if node.online:
                self.heartbeats.note(node.name, node.last_seen)
        self.heartbeats.stop_hearing()
        return commands

    def view(self, node: Node, now: float) -> NodeView:
        return node.view(lost=self.heartbeats.is_lost(node.name, now))

    def announce(self, node: Node, now: float) -> Announce:
        """Counts a node that has changed, and tells listeners about it."""
        self.counts.count(node)
        return Announce("node", self.view(node, now))

    def hear(self, name: str, cause: str, now: float, *, kept: bool = False) -> list[FleetCommand]:
        """Notes that a node was heard. A new node becomes known.

        A message that the broker had `kept` may be older than a will or an outage. It does not extend the time of a
        node that is online.
        """
        node = self.nodes.get(name)
        if not kept or node is None or not node.online:
            self.heartbeats.note(name, now, kept=kept)
        if node is not None and node.online:
            node.last_seen = now
            if not node.is_heard:
                node.is_heard = True
                self.news.note_heard(node)
            return []
        if node is None:
            node = self.nodes[name] = Node(name, now, now, forgotten_at=self._gone.pop(name, 0.0))
            self._places.locate(node)
            self.due.note(name)
            entry = self.story.tell(name, "joined", "heard for the first time", cause, now)
        else:
            entry = self.story.tell(name, "back", f"heard again after {now - node.last_seen:.0f} s", cause, now)
            node.online, node.last_seen, node.is_heard, node.backlog_before = True, now, True, now
        self.news.note_heard(node)
        self.news.note_details(node)
        return [entry, *self.note_change(node, now)]

    def outdate(self, now: float) -> None:
        """Notes that no node could be heard until now: newer runs of each node are still in its outbox."""
        self.heartbeats.stop_hearing()
        for node in self.nodes.values():
            node.is_heard, node.backlog_before = False, now

    def lose(self, name: str, text: str, cause: str | None, now: float) -> list[FleetCommand]:
        """Notes that a node is lost."""
        self.heartbeats.give_up(name)
        node = self.nodes[name]
        node.online = False
        self.news.note_lost(node)
        return [self.story.tell(name, "lost", text, cause, now), *self.note_change(node, now)]

    def forget(self, name: str, now: float) -> list[FleetCommand]:
        """Forgets a node that has left. If it is heard again, it is a new node."""
        node = self.nodes.pop(name)
        self.counts.drop(name)
        self._announced.replace(node.checks.values(), ())
        self._conduct.forget(name)
        self._gone[name] = node.forgotten_at = now
        self.due.note(name)
        gone = SaveNode(node.record().model_copy(update={"gone": True}))
        return [gone, Announce("gone", NodeGone(name=name)), *self.baselines.forget(name)]

    def renew(self, name: str, cause: str, now: float) -> list[FleetCommand]:
        """Treats a node that had left and was heard again as a new node."""
        node = self.nodes[name]
        node.drop_evidence(now)
        self.due.note(name)
        self._conduct.forget(name)
        self.news.note_heard(node)
        self.news.note_details(node)
        entry = self.story.tell(name, "joined", "had left the fleet; treated as a new node", cause, now)
        return [entry, *self.baselines.forget(name), *self.note_change(node, now)]

    def erase(self, name: str) -> list[FleetCommand]:
        """Deletes everything about a node."""
        if (node := self.nodes.pop(name, None)) is not None:
            self.counts.drop(name)
            self._announced.replace(node.checks.values(), ())
        self._conduct.forget(name)
        self._gone.pop(name, None)
        self.due.erase(name)
        gone = [] if node is None else [Announce("gone", NodeGone(name=name))]
        return [*gone, *self.baselines.forget(name)]

    def has_left(self, name: str) -> bool:
        """Whether a node was forgotten and not heard since."""
        return name in self._gone

    def equip(self, seen: InventorySeen, now: float) -> list[FleetCommand]:
        """Notes the inventory, checks and plugins of a node."""
        node, message = self.nodes[seen.message.node], self._definitions.with_shared(seen.message)
        before, plugins_before = node.checks, node.plugins
        digest_before, node.inventory_digest = node.inventory_digest, seen.digest
        if not node.note_inventory(message):
            return [] if seen.digest == digest_before else [SaveNode(node.record())]
        self._announced.replace(before.values(), node.checks.values())
        entries = self.story.not_loaded(node.name, plugins_before, node.plugins, message.id, now)
        judged = self.judge(node, message.id, now) if node.examined_health is not node.health else []
        self.news.note_details(node)
        return [*entries, *judged, *self.note_change(node, now)]

    def label(self, event: LabelsSeen, now: float) -> list[FleetCommand]:
        """Notes the labels that a scheduler has on a node. Labels of an unknown node wait until it is known."""
        node = self.nodes.get(event.node)
        if node is None:
            self._places.keep(event)
            return []
        if not self._places.relabel(node, event):
            return []
        self.news.note_description(node)
        return self.note_change(node, now)

    def note_presence(self, event: PresenceSeen) -> None:
        """Notes an agent's data about its outbox. Data that the broker retained is old: runs may wait since then."""
        node = self.nodes[event.message.node]
        node.note_presence(event.message)
        self.counts.count_outbox(node)
        if node.backlog_before is not None and not event.kept and event.message.outbox == 0:
            node.backlog_before = None
            self.news.note_evidence(node)

    def note_clock(self, message: Report, now: float) -> list[FleetCommand]:
        """Compares a node's clock with ours. The story says when it turns wrong or right."""
        node = self.nodes[message.node]
        text = node.clock.heard(message.sent_at, now)
        if text is None:
            return []
        return [self.story.tell(node.name, "clock", text, message.id, now), *self.note_change(node, now)]

    def note_misconduct(self, name: str, kind: Misconduct, detail: str, cause: str, now: float) -> list[FleetCommand]:
        """Notes misconduct of a node's agent. The story has only the first until the agent has behaved for a while."""
        if name not in self.nodes or not self._conduct.note(name, kind, now):
            return []
        finding = finding_of(kind, detail, cause, now)
        node = self.nodes[name]
        node.evidence.add_misconduct(finding)
        return [self.story.found(name, "misconduct", finding, cause, now), *self.judge(node, cause, now)]

    def clear_misconduct(self, cause: str, now: float) -> list[FleetCommand]:
        """Clears the misconduct of agents that have behaved for a while."""
        commands: list[FleetCommand] = []
        for name, kind in self._conduct.take_quiet(now):
            node = self.nodes[name]
            node.evidence.remove_misconduct(kind)
            commands += [
                self.story.tell(name, "no_longer", f"no longer: {kind}", cause, now),
                *self.judge(node, cause, now),
            ]
        return commands

    def add_run(self, run: Run, now: float) -> list[FleetCommand]:
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

    def _add_run(self, node: Node, run: Run, now: float) -> list[FleetCommand]:
        verdicts, before = node.evidence.verdicts, node.evidence.verdicts.get(run.check)
        changed = node.evidence.add(run, node.uuids)
        self.due.note_verdicts(run.node, before, verdicts.get(run.check))
        if changed:
            self.due.note(run.node)
        entries = self._tell_found(run, now) if changed else []
        compared = self._observe(run, now)
        if not compared.held:  # most runs are not compared
            return [*entries, *(self.judge(node, run.id, now) if changed else self._examine(node, run.id, now))]
        held = held_findings(compared.held, run, lambda name: self.nodes[name].uuids)
        return [*entries, *compared.commands, *self._conclude({run.node} if changed else set(), held, run.id, now)]

    def reset_baseline(self, baseline: str, cause: str, now: float) -> list[FleetCommand]:
        """Resets a baseline: the present values of its devices are normal. Raises Refused for an unknown baseline."""
        compared = self.baselines.reset(baseline, now)
        return [*compared.commands, *self._conclude(set(), dict.fromkeys(compared.held, ()), cause, now)]

    def judge(self, node: Node, cause: str, now: float) -> list[FleetCommand]:
        """Updates the health of a node after its evidence has changed."""
        commands: list[FleetCommand] = []
        before, node.health = node.health, node.examined_health
        if node.health is not before:
            because = "; ".join(node.reasons) or "everything passes"
            findings = sorted({finding.code for finding in node.evidence.findings})
            data: Json = {"before": before, "after": node.health, "findings": [*findings]}
            text = f"{before} to {node.health}: {because}"
            commands.append(self.story.tell(node.name, "health", text, cause, now, data=data))
        self.news.note_evidence(node)
        return [*commands, self.announce(node, now)]

    def note_change(self, node: Node, now: float) -> list[FleetCommand]:
        """Stores the record of a node that has changed, and announces its view."""
        return [SaveNode(node.record()), self.announce(node, now)]

    def _observe(self, run: Run, now: float) -> ComparedRun:
        node = self.nodes[run.node]
        metrics = self._announced.compared(run.check) if run.check in node.checks else {}
        kind, alike = node.hardware_kind, self.counts.hardware_kinds[node.hardware_kind]
        return self.baselines.observe(run, metrics, node.inventory, now, kind=kind, alike=alike)

    def _tell_found(self, run: Run, now: float) -> list[FleetCommand]:
        """The story entries for findings of a run that did not stand against its node before."""
        findings = self.nodes[run.node].evidence.checks[run.check].findings
        new = (finding for finding in findings if finding.run == run.id and finding.runs == 1)
        return [self.story.found(run.node, "found", finding, run.id, now) for finding in new]

    def _conclude(self, changed: set[str], held: HeldFindings, cause: str, now: float) -> list[FleetCommand]:
        """Notes the findings of comparisons, and updates the health of every changed node."""
        entries: list[FleetCommand] = []
        for (name, subject), findings in held.items():
            evidence = self.nodes[name].evidence
            before = evidence.compare(subject, findings)
            if before is not None:
                changed.add(name)
                self.due.note(name)
                entries += self.story.compared(name, before, evidence.comparisons.get(subject, ()), cause, now)
        return entries + [command for name in sorted(changed) for command in self.judge(self.nodes[name], cause, now)]

    def _examine(self, node: Node, cause: str, now: float) -> list[FleetCommand]:
        """Notes that a check has reported without a change of evidence, perhaps as the last one that was missing."""
        if node.health is Health.UNKNOWN and node.examined_health is not Health.UNKNOWN:
            return self.judge(node, cause, now)
        if node.service is ServiceState.ACCEPTING:
            self.news.note_evidence(node)
        return []
