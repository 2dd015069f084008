"""A coordinator whose broker is away, with a fleet that a test feeds, and its pages over a real socket."""

from contextlib import asynccontextmanager

from tests.coordinator.offline_shell import EPOCH, offline_shell, running
from tests.coordinator.quarantining_drill import check

from muster.check import Scope
from muster.config import Config, Settings
from muster.http_server import serving
from muster.model import Action, Device, Finding, Inventory, Run, Severity, Topology, Verdict
from muster.plugins import Plugins
from muster.quarantine_settings import BudgetSettings, QuarantineSettings, ReturnSettings
from muster.wire.messages import InventoryReport, Presence, Report
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.acceptance_records import acceptance_record
from muster_coordinator.model.events import (
    InventorySeen,
    PresenceSeen,
    ReportSeen,
    SaveGroup,
    SaveNode,
    SaveSweep,
    Ticked,
)
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.runtime.settings.policy_file import shipped_rows
from muster_coordinator.store.acceptance_reports import AcceptanceReports
from muster_coordinator.store.store import Store
from muster_coordinator.web.guard import Access
from muster_coordinator.web.server import application, listen
from muster_coordinator.web.sessions import Right

START = 1_800_000_000.0
GB = 1 << 30


def place(number, *, leaf=16, rack=32, block=256):
    """The place of the node with this number."""
    return Topology(
        block=f"b{number // block + 1}", rack=f"r{number // rack + 1:02}", leaf=f"leaf{number // leaf + 1:02}"
    )


def finding(code="gemm.slow", summary="310 TFLOP/s, at least 556 are expected", **more):
    return Finding(**{"code": code, "summary": summary, "severity": Severity.ERROR, "action": Action.REPLACE, **more})


SLOW = finding(device=3, evidence={"value": 310.25, "bound": 556.0, "source": "NVIDIA data sheet, H100 SXM"})
LOST_GPU = finding(
    "gemm.device_lost",
    "XID 79, GPU has fallen off the bus",
    device=5,
    action=Action.REBOOT_NODE,
    evidence={"xid": 79},
)


class PageFleet:
    """A fleet whose time is in `now`. `url` is where its pages are."""

    def __init__(self, shell, store, url, clock):
        self.shell, self.store, self.url, self._clock = shell, store, url, clock
        self._seqs: dict[str, int] = {}

    @property
    def now(self):
        return self._clock[0]

    async def feed(self, event):
        await self._take(event).wait()

    def _take(self, event):
        """The fleet handles the event; what is returned is set when all that it has handled so far is stored."""
        self._clock[0] += 0.001
        return self.shell.pipeline.feed(event)

    async def join(self, *nodes, topology=place, devices=8, compared=None, uuid="GPU", **inventory):
        """These nodes join, and pass their check, whose metrics in `compared` are compared over the fleet.

        All are stored together: a transaction for each of their messages costs more than all else that a test does.
        """
        for number, node in enumerate(nodes):
            made = Inventory(
                devices=tuple(
                    Device(
                        index=index,
                        uuid=f"{uuid}-{node}-{index:04}",
                        model="NVIDIA H100 80GB HBM3",
                        serial=f"16548230{index:05}",
                        pci_address=f"00000000:{index + 1:02X}:00.0",
                        memory_bytes=80 * GB,
                    )
                    for index in range(devices)
                ),
                topology=topology(number) if topology else Topology(),
                **inventory,
            )
            gemm = check("gemm").model_copy(update={"compared": compared or {}})
            checks = (gemm, check("collective", Scope.GROUP))
            head = {"id": f"m-{node}", "sent_at": self.now, "node": node}
            self._take(PresenceSeen(Presence(**head, online=True)))
            self._take(InventorySeen(InventoryReport(**head, inventory=made, checks=checks)))
            self._take(self._run(node))
        await self.shell.pipeline.flush()

    async def report(self, node, *findings, verdict=None, metrics=None):
        """A node reports a run of its check."""
        await self.feed(self._run(node, *findings, verdict=verdict, metrics=metrics))

    def _run(self, node, *findings, verdict=None, metrics=None):
        """The next run of the node's check."""
        seq = self._seqs[node] = self._seqs.get(node, 0) + 1
        run = Run(
            id=f"{node}-{seq}",
            node=node,
            check="gemm",
            verdict=verdict or (Verdict.FAIL if findings else Verdict.PASS),
            findings=findings,
            metrics=metrics or {"tflops": [600.0, 590.5]},
            started_at=self.now,
            duration_s=0.1,
            seq=seq,
        )
        message = Report(id=f"m-{run.id}", sent_at=self.now, node=node, stream=node, after=seq - 1, runs=(run,))
        return ReportSeen(message)

    async def leave(self, *nodes):
        """The heartbeats of these nodes stop."""
        for node in nodes:
            message = Presence(id=f"l-{node}", sent_at=self.now, node=node, online=False, goodbye=True)
            await self.feed(PresenceSeen(message))

    async def keep(self, sweep):
        """A sweep is stored with its groups."""
        groups = [
            SaveGroup(sweep.id, stage.number, group.model_copy(update={"id": f"{sweep.id}-{group.id}"}))
            for stage in sweep.rounds
            for group in stage.groups
        ]
        outline = tuple(stage.model_copy(update={"groups": ()}) for stage in sweep.rounds)
        await self.store.write([SaveSweep(sweep.model_copy(update={"rounds": outline})), *groups])

    async def accept(self, report, by="job 17"):
        """A report has been sent in. Returns the id of the acceptance."""
        self._clock[0] += 0.001
        record = acceptance_record(report, received_at=self.now, sent_by=by)
        return (await AcceptanceReports(self.store.database).add(record)).id

    async def beat(self, *nodes):
        for node in nodes:
            await self.feed(PresenceSeen(Presence(id=f"b-{node}", sent_at=self.now, node=node, online=True)))

    async def pass_time(self, seconds):
        """Lets time pass at once."""
        self._clock[0] += seconds
        await self.feed(Ticked())


@asynccontextmanager
async def page_fleet(data_dir, *, access=None, mode="enforce", share="10%", is_connected=True, stored=(), epoch=EPOCH):
    """A fleet that has no nodes but the `stored` ones."""
    clock = [START]
    settings = Settings(data_dir=data_dir)
    store = await Store.open(settings)
    await store.write([SaveNode(record) for record in stored])
    rules = QuarantineSettings(
        mode=mode,
        budget=BudgetSettings(share=share, domain_share="100%", per_minute=600),
        returning=ReturnSettings(wait_s=600.0, pause_s=60.0, passes=2),
    )
    fleet = Fleet(name="prod-h100", epoch=epoch, rules=rules, policy=Policy(shipped_rows()), heartbeat_s=1e6)
    pipeline = Pipeline(fleet, store, clock=lambda: clock[0])
    pipeline.fleet.restore(await store.saved(), pipeline.clock())
    shell = offline_shell(settings, pipeline, store, Plugins(Config(settings)), epoch)
    listener, url = listen("127.0.0.1:0")
    access = access or Access("any", Right.READ, "")
    async with running(shell), serving(application(shell.routes(store), access), listener):
        shell.link.connected = is_connected
        yield PageFleet(shell, store, url, clock)
        shell.stream.close()
        shell.changes.close()
    await store.close()
