"""Coordinators one after the other over one store, as if each were killed, and what happens to their nodes."""

from muster.check import CheckInfo, Needs, Scope
from muster.model import Finding, Inventory, Run, Severity, Verdict
from muster.quarantine_settings import BudgetSettings, QuarantineSettings, ReturnSettings
from muster.wire.messages import InventoryReport, Presence, Report, RunCheck
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import InventorySeen, LinkCaughtUp, PresenceSeen, ReportSeen, SendCommand
from muster_coordinator.model.quarantine_events import ActionEnded, AllActorsCalled, DispatchTransition
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.policy_file import shipped_rows

NODES = ("n1", "n2", "n3", "n4")
CHECK = CheckInfo(
    name="nvml",
    summary="",
    scope=Scope.NODE,
    needs=Needs.NOTHING,
    cadence_s=60.0,
    timeout_s=5.0,
    objective=None,
    params={"type": "object", "properties": {}},
)
RULES = QuarantineSettings(mode="enforce", budget=BudgetSettings(), returning=ReturnSettings(wait_s=0.0, passes=1))


class Lives:
    """Coordinators one after the other over the same store. What `feed` gives is stored, as the pipeline does."""

    def __init__(self, store):
        self.store = store
        self.mode = "enforce"
        self.fleet = Fleet(name="f", epoch=0)  # until it begins
        self.now = 1_800_000_000.0
        self._seq = 0

    async def begin(self):
        """A coordinator begins where the last was killed; gives what it does at once."""
        self.now += 10.0
        rules, epoch = RULES.model_copy(update={"mode": self.mode}), await self.store.begin_epoch(self.now, "http://a")
        self.fleet = Fleet(name="f", epoch=epoch, rules=rules, policy=Policy(shipped_rows()))
        begun = self.fleet.restore(await self.store.saved(), self.now)
        begun += self.fleet.handle(LinkCaughtUp(), self.now)
        await self.store.write(begun)
        return begun

    async def feed(self, *events):
        """What the fleet does about these events, once it is stored."""
        self.now += 1.0
        commands = [command for event in events for command in self.fleet.handle(event, self.now)]
        await self.store.write(commands)
        return commands

    def run(self, node, verdict=Verdict.PASS, run=None, age_s=0.0, duration_s=0.1):
        """A run of the check on a node, as its agent reports it; it may have waited in the outbox."""
        self._seq += 1
        lost = Finding(code="nvml.device_lost", summary="gone", severity=Severity.ERROR)
        made = Run(
            id=run or f"r{self._seq}",
            node=node,
            check="nvml",
            verdict=verdict,
            findings=(lost,) if verdict is Verdict.FAIL else (),
            started_at=self.now - age_s,
            duration_s=duration_s,
            seq=self._seq,
        )
        stream = f"{node}-{self._seq}"
        return ReportSeen(Report(id="m", sent_at=self.now, node=node, stream=stream, after=0, runs=(made,)))

    async def cordon(self, node):
        """A node is found to be broken; gives the transition that its actors are to be told."""
        (act,) = acts(await self.feed(self.run(node, Verdict.FAIL)))
        return act.record.transition

    async def told(self, transition, **effects):
        """Actors have answered, each with this effect; and with that all were told."""
        head = {"node": transition.node, "transition": transition.id}
        answers = [ActionEnded(**head, actor=actor, effect=effect, detail="so") for actor, effect in effects.items()]
        await self.feed(*answers, AllActorsCalled(**head))

    def state(self, node):
        case = self.fleet.case(node)
        assert case is not None
        return case.state


def acts(commands):
    return [command for command in commands if isinstance(command, DispatchTransition)]


def ordered(commands):
    return [it.command for it in commands if isinstance(it, SendCommand) and isinstance(it.command, RunCheck)]


def presence(node, online=True):
    return PresenceSeen(Presence(id="m", sent_at=1.0, node=node, online=online, goodbye=not online))


def inventory(node, kept=False):
    report = InventoryReport(id="m", sent_at=1.0, node=node, inventory=Inventory(), checks=(CHECK,))
    return InventorySeen(report, kept=kept)
