"""A coordinator that is restarted at any moment knows the same as one that went on, and reads no run for it."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.lots import seeds

from muster.check import CheckInfo, Needs, Scope, Worse
from muster.config import Settings
from muster.model import Action, Device, Finding, Inventory, Run, Severity, Verdict
from muster.wire.messages import InventoryReport, Presence, Report
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.baseline_commands import (
    EraseBaseline,
    SaveBaseline,
    SaveFingerprint,
    SaveLevels,
    SaveResults,
)
from muster_coordinator.model.events import BaselineReset, InventorySeen, PresenceSeen, ReportSeen, SaveEvidence
from muster_coordinator.normal import baselines as baselines_module
from muster_coordinator.store.store import Store

NODES = tuple(f"n{number:02}" for number in range(24))
EVENTS = 700
START = 1_800_000_000.0
SAVED = (SaveBaseline, SaveFingerprint, SaveLevels, SaveResults, SaveEvidence)


def check(name: str, **more: Any) -> CheckInfo:
    """A check as a node announces it."""
    known = {"summary": "", "scope": Scope.NODE, "needs": Needs.NOTHING, "timeout_s": 5.0, "objective": None}
    return CheckInfo(**{"name": name, "params": {"type": "object"}, "cadence_s": 60.0, **known, **more})


CHECKS = (check("nvml"), check("host"), check("gemm", compared={"tflops": Worse.LOWER, "step_s": Worse.HIGHER}))


@dataclass
class Happenings:
    """Random events of a fleet: faults that come and go, slow nodes, other bits, a driver that slows everything."""

    chance: random.Random
    now: float = START
    slow: float = 1.0
    bad: dict[str, float] = field(default_factory=dict)
    seqs: dict[str, int] = field(default_factory=dict)

    def joined(self, node: str) -> list[Any]:
        """A node connects."""
        head: dict[str, Any] = {"id": "m", "sent_at": self.now, "node": node}
        devices = tuple(Device(index=index, uuid=f"{node}-{index}", model="x") for index in range(2))
        made = Inventory(devices=devices, machine_type="a3")
        presence = PresenceSeen(Presence(**head, online=True))
        return [presence, InventorySeen(InventoryReport(**head, inventory=made, checks=CHECKS))]

    def next(self, baselines: list[str]) -> list[Any]:
        """What happens next, some time later."""
        self.now += self.chance.choice((0.25, 20.0, 600.0))
        node, kind = self.chance.choice(NODES), self.chance.random()
        if kind < 0.01:
            self.slow = self.chance.choice((1.0, 0.85))
        if kind < 0.03:
            self.bad = {self.chance.choice(NODES): 0.8}
        if kind < 0.004 and baselines:
            return [BaselineReset(self.chance.choice(baselines))]
        if kind < 0.4:
            return [self._report(node, self.chance.choice(("nvml", "host", "plugins")))]
        return [self._report(node, "gemm", **self._measured(node))]

    def _measured(self, node: str) -> dict[str, Any]:
        values = [self.chance.gauss(700, 5) * self.slow * self.bad.get(node, 1.0) for _ in range(2)]
        bits = ["ab", "cd" if self.bad.get(node) and self.chance.random() < 0.5 else "ab"]
        facts = {"backend": "cuda", "devices": [0, 1], "models": ["x", "x"], "fingerprints": {"bf16": bits}}
        return {"metrics": {"tflops": values, "step_s": 700 / values[0]}, "facts": facts}

    def _report(self, node: str, name: str, **more: Any) -> ReportSeen:
        seq = self.seqs[node] = self.seqs.get(node, 0) + 1
        likely = (Verdict.PASS,) * 12 + (Verdict.SKIPPED,) * 4
        verdict = self.chance.choice(likely if name == "gemm" else (*likely, *Verdict))
        severity = {Verdict.WARN: Severity.WARNING, Verdict.FAIL: Severity.ERROR}.get(verdict, Severity.INFO)
        found = Finding(
            code=f"{name}.bad",
            summary="bad",
            severity=severity,
            device=self.chance.choice((None, 0, 1)),
            action=self.chance.choice((Action.NONE, Action.REPLACE)),
        )
        run = Run(
            id=f"{node}-{seq}",
            node=node,
            check=name,
            verdict=verdict,
            findings=() if severity is Severity.INFO else (found,),
            started_at=self.now,
            duration_s=0.1,
            cause="schedule",
            seq=seq,
            **more,
        )
        head: dict[str, Any] = {"id": "m", "sent_at": self.now, "node": node}
        return ReportSeen(Report(**head, stream="s", after=seq - 1, runs=(run,)))


def known(fleet: Fleet, now: float) -> dict[str, Any]:
    """What the fleet knows about its nodes and their comparisons. A last verdict may be PASS in place of SKIPPED.

    Whether they are lost is known only once they are heard again, and shows as their health.
    """
    fields = {"last_health", "findings", "reasons", "checks"}
    nodes = {}
    for name in fleet.names:
        view = fleet.node(name, now)
        assert view is not None
        nodes[name] = view.model_dump(mode="json", include=fields)
        nodes[name]["checks"] = plain(nodes[name]["checks"])
    baselines = [view.model_dump(mode="json") for view in fleet.baselines()]
    findings = fleet.view(now).findings
    return {"nodes": nodes, "baselines": baselines, "findings": findings, "comparisons": fleet.comparisons}


def plain(verdicts: dict[str, str]) -> dict[str, str]:
    """The verdicts, with PASS in place of SKIPPED."""
    return {name: verdict.replace("SKIPPED", "PASS") for name, verdict in verdicts.items()}


def stored(commands: list[Any]) -> list[Any]:
    """The records of evidence and comparisons that these commands store, in no order."""
    bodies = []
    for command in commands:
        if isinstance(command, EraseBaseline):
            bodies.append(command.baseline)
        elif isinstance(command, SAVED):
            body = command.record.model_dump(mode="json")
            bodies.append(f"{body | {'verdicts': plain(body.get('verdicts', {}))}}")
    return sorted(bodies)


@pytest.mark.parametrize("seed", seeds(2))
async def test_a_restart_at_any_moment_changes_nothing(tmp_path, seed, monkeypatch):
    """Neither what is known about nodes, nor what follows from their next runs."""
    monkeypatch.setattr(baselines_module, "DEVICES_AT_ONCE", 30)
    happenings = Happenings(random.Random(seed))
    stop = happenings.chance.randrange(EVENTS // 4, EVENTS - 100)
    store = await Store.open(Settings(data_dir=tmp_path))
    fleet = Fleet(name="f", epoch=1)
    events = [event for node in NODES for event in happenings.joined(node)]
    for _ in range(stop):
        await store.write([command for event in events for command in fleet.handle(event, happenings.now)])
        events = happenings.next([view.id for view in fleet.baselines()])

    saved = await store.saved()
    assert saved.runs == ()
    again = Fleet(name="f", epoch=1)
    assert stored(again.restore(saved, happenings.now)) == []
    assert known(again, happenings.now) == known(fleet, happenings.now)
    for _ in range(stop, EVENTS):
        followed = [
            [command for event in events for command in each.handle(event, happenings.now)] for each in (fleet, again)
        ]
        assert stored(followed[1]) == stored(followed[0])
        events = happenings.next([view.id for view in fleet.baselines()])
    assert known(again, happenings.now) == known(fleet, happenings.now)
    await store.close()
