"""The rows that the commands of the fleet write, by table."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Table

from muster.model import Run
from muster_coordinator.evidence.node_clock import begun_at
from muster_coordinator.model.audit import StoredCommand
from muster_coordinator.model.baseline_commands import (
    EraseBaseline,
    SaveBaseline,
    SaveFingerprint,
    SaveLevels,
    SaveResults,
)
from muster_coordinator.model.events import (
    AppendStory,
    SaveEvidence,
    SaveGroup,
    SaveNode,
    SaveReference,
    SaveSweep,
    StoreRuns,
)
from muster_coordinator.model.evidence_record import EvidenceRecord
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.model.quarantine_events import EraseNode
from muster_coordinator.store.node_rows import WrittenNodes
from muster_coordinator.store.quiet_rows import BaseRows, quiet_row
from muster_coordinator.store.stored_sweeps import group_row, sweep_row
from muster_coordinator.store.tables import (
    ANNOUNCEMENTS,
    BASELINES,
    EVIDENCE,
    FINGERPRINTS,
    GROUPS,
    LEVELS,
    NODES,
    QUIET_RUNS,
    REFERENCES,
    RESULTS,
    RUN_BASES,
    RUNS,
    STORY,
    STREAMS,
    SWEEPS,
)

Rows = list[dict[str, Any]]


def command_rows(commands: Iterable[StoredCommand]) -> dict[Table, Rows]:
    """The rows to write, by table. If a row is written several times, only its last state is."""
    runs: Rows = []
    story: Rows = []
    references: Rows = []
    quiet: Rows = []
    streams, nodes, sweeps, groups, normal, bases = {}, _Nodes(), {}, {}, _Normal(), BaseRows()
    for command in commands:
        match command:
            case StoreRuns(node, stream, through, stored, behind_s, at):
                streams[node, stream] = {"node": node, "stream": stream, "through": through}
                runs.extend(_run_row(run, stream, begun_at(run, behind_s, at)) for run in stored)
                quiet.extend(quiet_row(each, stream, begun_at(each.run, behind_s, at)) for each in command.quiet)
                bases.take(command)
            case SaveNode() | SaveEvidence() | EraseNode():
                nodes.take(command)
            case SaveSweep(sweep):
                sweeps[sweep.id] = sweep
            case SaveGroup(record=record):
                groups[record.id] = command
            case SaveReference(record):
                references.append({"number": record.number, "body": record.reference.model_dump_json()})
            case SaveBaseline() | SaveLevels() | SaveFingerprint() | SaveResults() | EraseBaseline():
                normal.take(command)
            case AppendStory(entry):
                story.append({"node": entry.node, "at": entry.at, "body": entry.model_dump_json()})
    written = WrittenNodes(nodes.records.values())
    return {
        STREAMS: list(streams.values()),
        ANNOUNCEMENTS: [*written.announcements.values()],
        NODES: written.nodes,
        EVIDENCE: [{"node": name, "body": known.model_dump_json()} for name, known in nodes.evidence.items()],
        SWEEPS: [sweep_row(sweep) for sweep in sweeps.values()],
        GROUPS: [group_row(saved) for saved in groups.values()],
        REFERENCES: references,
        BASELINES: [*normal.baselines.values()],
        LEVELS: [*normal.levels.values()],
        FINGERPRINTS: [*normal.fingerprints.values()],
        RESULTS: [*normal.results.values()],
        RUNS: runs,
        QUIET_RUNS: quiet,
        RUN_BASES: [*bases.rows.values()],
        STORY: story,
    }


class _Nodes:
    """The last records of nodes and of the evidence about them, without those of nodes that a later command erases."""

    def __init__(self) -> None:
        self.records: dict[str, NodeRecord] = {}
        self.evidence: dict[str, EvidenceRecord] = {}

    def take(self, command: SaveNode | SaveEvidence | EraseNode) -> None:
        """Takes the record of a command."""
        match command:
            case SaveNode(record):
                self.records[record.name] = record
            case SaveEvidence(evidence):
                self.evidence[evidence.node] = evidence
            case EraseNode(node=node):
                self.records.pop(node, None)
                self.evidence.pop(node, None)


class _Normal:
    """The rows of comparisons and of the devices in them, without those that a later command erases."""

    def __init__(self) -> None:
        self.baselines: dict[str, dict[str, Any]] = {}
        self.levels: dict[tuple[str, str], dict[str, Any]] = {}
        self.fingerprints: dict[str, dict[str, Any]] = {}
        self.results: dict[tuple[str, str], dict[str, Any]] = {}

    def take(self, command: SaveBaseline | SaveLevels | SaveFingerprint | SaveResults | EraseBaseline) -> None:
        """Takes the row of a command."""
        match command:
            case SaveBaseline(record):
                self.baselines[record.id] = {"id": record.id, "body": record.model_dump_json()}
            case SaveLevels(levels):
                row = {"baseline": levels.baseline, "node": levels.node, "body": levels.model_dump_json()}
                self.levels[levels.baseline, levels.node] = row
            case SaveFingerprint(record):
                self.fingerprints[record.id] = {"id": record.id, "body": record.model_dump_json()}
            case SaveResults(results):
                row = {"fingerprint": results.fingerprint, "node": results.node, "body": results.model_dump_json()}
                self.results[results.fingerprint, results.node] = row
            case EraseBaseline(baseline):
                self.baselines.pop(baseline, None)
                self.fingerprints.pop(baseline, None)
                self.levels = {key: row for key, row in self.levels.items() if key[0] != baseline}
                self.results = {key: row for key, row in self.results.items() if key[0] != baseline}


def _run_row(run: Run, stream: str, started_at: float) -> dict[str, Any]:
    return {
        "id": run.id,
        "node": run.node,
        "check": run.check,
        "verdict": run.verdict.value,
        "started_at": started_at,
        "duration_s": run.duration_s,
        "stream": stream,
        "seq": run.seq,
        "group": run.group,
        "cause": run.cause,
        "body": run.model_dump_json(),
    }
