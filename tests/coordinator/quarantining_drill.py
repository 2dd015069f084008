"""A fleet of three nodes under quarantine, and what a store would keep of it."""

from muster.check import CheckInfo, Needs, Scope
from muster.model import Action as Advice
from muster.model import Finding, Inventory, Run, Severity, Topology, Verdict
from muster.quarantine_settings import BudgetSettings, QuarantineSettings, ReturnSettings
from muster.transition import Effect
from muster.wire.messages import InventoryReport, Presence, Report, RunCheck
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    AppendStory,
    InventorySeen,
    PresenceSeen,
    ReportSeen,
    SaveNode,
    SendCommand,
    StoreRuns,
    Ticked,
)
from muster_coordinator.model.quarantine_events import (
    ActionEnded,
    AllActorsCalled,
    DispatchTransition,
    SaveRecord,
    SaveTransition,
)
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.policy_file import shipped_rows

START = 1_800_000_000.0


NODES = ("n1", "n2", "n3")


BUDGET = BudgetSettings(share="100%", domain_share="100%", per_minute=6000)


LOST, SLOW = "gemm.device_lost", "gemm.slow"  # the first is fatal by nature, the second must be found twice


def rules(mode="enforce", **settings):
    returning = ReturnSettings(wait_s=0.0, pause_s=1.0, passes=1)
    return QuarantineSettings(mode=mode, budget=BUDGET, **{"returning": returning, **settings})


def check(name, scope=Scope.NODE):
    return CheckInfo(
        name=name,
        summary="",
        scope=scope,
        needs=Needs.NOTHING,
        cadence_s=60.0 if scope is Scope.NODE else None,
        timeout_s=20.0,
        objective=None,
        params={"type": "object", "properties": {}, "additionalProperties": False},
    )


class Stored:
    """What a store would hold of the commands so far."""

    def __init__(self):
        self.nodes, self.records, self.transitions, self.streams = {}, {}, {}, {}
        self.runs = []

    def write(self, command):
        match command:
            case SaveNode(record):
                self.nodes[record.name] = record
            case SaveRecord(record=record):
                self.records[record.node] = record
            case SaveTransition(record=transition):
                self.transitions[transition.transition.id] = transition
            case StoreRuns(node, stream, through, runs, behind_s):
                self.streams[node, stream] = through
                self.runs += runs
                self.behind_s = behind_s

    def saved(self):
        return StoredFleet(
            nodes=tuple(self.nodes.values()),
            runs=tuple(self.runs),
            streams=self.streams,
            quarantine=tuple(self.records.values()),
            transitions=tuple(self.transitions.values()),
        )


class Drill:
    """A fleet whose actor does as it is told, unless it is `mute`; keeps what was ordered and told."""

    def __init__(self, settings, *, stored=None, epoch=7, now=START):
        self.settings, self.epoch, self.now, self.mute = settings, epoch, now, False
        self.fleet = Fleet(name="f", epoch=epoch, rules=settings, policy=Policy(shipped_rows()))
        self.stored = stored or Stored()
        self.ordered, self.acts, self.story = [], [], []
        self._obey(self.fleet.restore(self.stored.saved(), now))

    def start(self, *nodes):
        """These nodes join and pass their check."""
        for node in nodes:
            inventory = Inventory(topology=Topology(rack="r1"))
            checks = (check("gemm"), check("collective", Scope.GROUP))
            message = {"id": f"m-{node}", "sent_at": self.now, "node": node}
            self.feed(PresenceSeen(Presence(**message, online=True)))
            self.feed(InventorySeen(InventoryReport(**message, inventory=inventory, checks=checks)))
            self.report(node)
        return self

    def restarted(self, settings=None):
        """The next leadership over what was stored."""
        return Drill(settings or self.settings, stored=self.stored, epoch=self.epoch + 1, now=self.now)

    def beat(self, *nodes, outbox=0, kept=False):
        """These nodes send a heartbeat; so many runs wait in their outboxes."""
        for node in nodes:
            message = Presence(id=f"m-{node}", sent_at=self.now, node=node, online=True, outbox=outbox)
            self.feed(PresenceSeen(message, kept=kept))

    def feed(self, event, after_s=0.01):
        self.now += after_s
        self._obey(self.fleet.handle(event, self.now))

    def pass_time(self, seconds):
        for _ in range(seconds):
            self.feed(Ticked(), 1.0)

    def report(self, node, *codes, run=None, verdict=None, ahead_s=0.0, age_s=0.0, check="gemm", findings=()):
        """A node, whose clock may be ahead, reports a run, which may have waited in its outbox."""
        seq = self.stored.streams.get((node, node), 0) + 1
        self.now += 0.01
        findings = findings or tuple(
            Finding(code=code, summary="it is bad", severity=Severity.ERROR, action=Advice.REBOOT_NODE)
            for code in codes
        )
        done = Run(
            id=run or f"{node}-{seq}",
            node=node,
            check=check,
            verdict=verdict or (Verdict.FAIL if codes else Verdict.PASS),
            findings=findings,
            started_at=self.now + ahead_s - age_s,
            duration_s=0.1,
            seq=seq,
        )
        message = {"id": f"m-{done.id}", "sent_at": self.now + ahead_s, "node": node}
        self.feed(ReportSeen(Report(**message, stream=node, after=seq - 1, runs=(done,))))

    def answer_order(self, *codes, verdict=None):
        """Does the last run that was ordered."""
        node, order = self.ordered.pop()
        self.report(node, *codes, run=order.run, verdict=verdict)

    def state(self, node="n1"):
        return self.stored.records[node].state

    def kinds(self, node="n1"):
        return [entry.kind for entry in self.story if entry.node == node]

    def _obey(self, commands):
        for command in commands:
            self.stored.write(command)
            match command:
                case AppendStory(entry):
                    self.story.append(entry)
                case SendCommand(node, RunCheck() as order):
                    self.ordered.append((node, order))
        for command in commands:
            if isinstance(command, DispatchTransition):
                self.acts.append(command.record.transition)
                if not self.mute:
                    self._answer(command)

    def _answer(self, act):
        about = {"node": act.record.transition.node, "transition": act.record.transition.id}
        self.feed(ActionEnded(**about, actor="slurm", effect=Effect.DONE, detail="done"))
        if not act.actors:
            self.feed(AllActorsCalled(**about))
