"""The policy that comes with muster, held against the findings that there are."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from tests.cases import cases

from muster import plugins
from muster.config import Config, Settings
from muster.model import Action, Severity
from muster_coordinator.model.findings import Proof, StandingFinding
from muster_coordinator.model.policy_row import Row
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.contradictions import pointless_rows
from muster_coordinator.runtime.settings.known_findings import known_findings
from muster_coordinator.runtime.settings.policy_file import shipped_rows
from muster_plugins.shared import xids

AGENT = Path(__file__).parents[3] / "agent" / "muster_agent"
POLICY = Policy(shipped_rows())
ROWS = {row.name: row for row in shipped_rows()}
CHECKS = plugins.collect_checks(plugins.load(Config(Settings())))
KNOWN = known_findings(CHECKS)


def charge(code, check, **said):
    usual = {
        "device": 0,
        "severity": Severity.ERROR,
        "action": Action.NONE,
        "summary": "found",
        "since": 0.0,
        "seen": 1000.0,
        "run": "r1",
        "proof": Proof.TWICE,
    }
    return StandingFinding(code=code, check=check, **{**usual, **said})


def decided_by(code, **said):
    row = POLICY.row_of(charge(code, said.pop("check", code.split(".")[0]), **said))
    return None if row is None else row.name


@cases("row", shipped_rows(), ids=lambda row: row.name)
def test_every_pattern_decides_about_something(row):
    """A code that was renamed leaves no dead pattern behind, nor is one taken by the rows in front."""
    evidence = {name: values[0] if isinstance(values, list) else values for name, values in row.when.items()}
    decided = {
        known.code
        for known in KNOWN
        if POLICY.row_of(charge(known.code, known.check, proof=known.proof, evidence=evidence)) is row
    }
    assert [pattern for pattern in row.codes if not any(fnmatchcase(code, pattern) for code in decided)] == []


def test_no_row_is_pointless():
    """Each row decides about something, and no name stands twice."""
    assert list(pointless_rows(shipped_rows(), KNOWN)) == []
    names = [row.name for row in shipped_rows()]
    assert len(set(names)) == len(names)


def test_whatever_is_found_is_decided_on_purpose():
    """Were it an error, a row would say what comes of it; nothing of a built-in check is left to the lack of a row."""
    undecided = [known for known in KNOWN if POLICY.row_of(charge(known.code, known.check, proof=known.proof)) is None]
    assert undecided == []


@cases("row", shipped_rows(), ids=lambda row: row.name)
def test_every_row_has_a_reason_and_a_source(row):
    """The source is not the operator, and the reason a sentence without its full stop, as in a table."""
    assert row.source != Row.model_fields["source"].default
    assert row.reason[0].isupper()
    assert not row.reason.endswith(".")


@cases(
    ("code", "said", "row"),
    [
        ("nvml.xid", {"evidence": {"xid": 79}}, "fallen-off-the-bus"),
        ("kernel_log.xid", {"evidence": {"xid": 79}}, "fallen-off-the-bus"),
        ("kernel_log.off_the_bus", {}, "gpu-lost"),
        ("nvml.device_lost", {}, "gpu-lost"),
        ("nvml.devices_missing", {"device": None}, "gpu-missing"),
        ("nvml.xid", {"evidence": {"xid": 95}}, "memory-not-contained"),
        ("nvml.xid", {"evidence": {"xid": 64}}, "rows-not-recorded"),
        ("nvml.row_remap_failed", {}, "rows-used-up"),
        ("nvml.xid", {"evidence": {"xid": 74}}, "nvlink-fatal"),
        ("kernel_log.sxid", {"evidence": {"sxid": 12028}}, "nvswitch-fatal"),
    ],
)
def test_what_is_fatal_by_nature_needs_no_second_look(code, said, row):
    """The first run that finds it proves the demand."""
    found = charge(code, code.split(".")[0], proof=Proof.ONCE, **said)
    demand = POLICY.evaluate([found], {}, 1000.0).requirement
    assert demand is not None
    assert (demand.row, demand.is_proven) == (row, True)


@cases(
    ("code", "row"),
    [
        ("gemm.slow", "slow"),
        ("gemm.corrupt", "wrong-results"),
        ("memory.corrupt", "wrong-results"),
        ("memory.transfer_slow", "slow"),
        ("nvml.ecc_uncorrected", "gpu-memory"),
        ("nvml.pcie_slow", "pcie"),
        ("nvml.too_hot", "heat"),
        ("host.stuck_process", "driver-hangs"),
        ("fabric.port_drop", "port-down"),
        ("dcgm.failed", "diagnostic"),
    ],
)
def test_everything_else_is_looked_at_twice(code, row):
    """One run that finds it only makes the check find it again."""
    check = code.split(".")[0]
    once = POLICY.evaluate([charge(code, check, proof=Proof.ONCE)], {}, 1000.0).requirement
    twice = POLICY.evaluate([charge(code, check)], {}, 1000.0).requirement
    assert once is not None
    assert twice is not None
    assert (once.row, once.unproven, twice.unproven) == (row, (check,), ())


def test_other_errors_of_the_driver_are_looked_at_twice():
    """Every XID whose row is an ERROR leads out of service, most of them after a second look."""
    errors = [xid for xid in xids.catalogue().values() if xid.severity is Severity.ERROR]
    decided = {xid.code: decided_by("nvml.xid", evidence={"xid": xid.code}) for xid in errors}
    assert decided[119] == decided[120] == "gpu-needs-reset"
    assert all(ROWS[name].drains for name in decided.values() if name)
    assert None not in decided.values()


@pytest.mark.parametrize("xid", [13, 31, 43, 45])
def test_xids_that_are_the_applications_name_their_row(xid):
    """It is told why they take nobody out, even if they were errors."""
    assert decided_by("kernel_log.xid", evidence={"xid": xid}) == "application"


@cases(
    ("code", "said", "row"),
    [
        ("node.lost", {}, "lost"),
        ("run.preempted", {"check": "gemm"}, "not-measured"),
        ("run.skipped", {"check": "gemm"}, "not-measured"),
        ("plugins.failed", {}, "not-measured"),
        ("baseline.drift", {"check": "gemm", "proof": Proof.COMPARED}, "compared"),
        ("collective.slow", {}, "group"),
        ("host.disk_full", {}, "host"),
        ("storage.slow", {}, "storage"),
    ],
)
def test_what_never_takes_a_node_out(code, said, row):
    """A row says so, and why."""
    assert decided_by(code, **said) == row
    assert not ROWS[row].drains


@pytest.mark.parametrize("check", ["collective", "training_ddp", "gemm"])
def test_a_conviction_takes_a_node_out_for_a_day(check):
    """Also by a check that runs in groups, and although sweeps are rare."""
    found = charge(f"{check}.slow", check, proof=Proof.LOCALISED, seen=0.0)
    for now, proven in ((80_000.0, True), (90_000.0, False)):
        demand = POLICY.evaluate([found], {}, now).requirement
        assert demand is not None
        assert (demand.row, demand.is_proven) == ("convicted", proven)


def test_what_agents_find_about_runs_is_known():
    """Their codes stand in the source of the agent, which the coordinator does not import."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in AGENT.rglob("*.py"))
    found = {f"run.{word}" for word in re.findall(r'_unknown\(\s*"(\w+)"', source)}
    found |= set(re.findall(r'code="((?:run|plugins)\.\w+)"', source))
    assert {known.code for known in KNOWN if known.code.startswith(("run.", "plugins."))} == found
