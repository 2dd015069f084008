"""An acceptance whose report was sent to the coordinator: what it came to, and the report itself."""

from dataclasses import dataclass
from hashlib import blake2b

from muster.acceptance import AcceptanceReport
from muster.model import Data, Instant, Name, TotalSeconds, Verdict
from muster.texts import Label, Text

MOST_FAILED_NAMED = 20
"""Nodes that a summary names at most."""

_DIGEST_BYTES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceFilter:
    """The reports wanted: those about a node, with a verdict of the whole, of a suite."""

    node: str | None = None
    verdict: Verdict | None = None
    suite: str | None = None


class AcceptanceSummary(Data):
    """An acceptance in a list.

    - `id`: a digest of the report, so that a report that is sent twice is there once
    - `cause`: the errors in one line, empty without any
    - `failed`: the number of nodes that failed, of which `failed_nodes` are the first by name
    - `without_gpu`: the number of nodes on which no GPU was found
    """

    id: Name
    suite: Label
    verdict: Verdict
    cause: Text
    nodes: int
    failed: int
    failed_nodes: tuple[Name, ...]
    without_gpu: int
    simulated: bool
    started_at: Instant
    duration_s: TotalSeconds
    muster_version: Label
    received_at: Instant
    sent_by: Text


class AcceptanceRecord(AcceptanceSummary):
    """An acceptance with its report."""

    report: AcceptanceReport


def acceptance_record(report: AcceptanceReport, *, received_at: float, sent_by: str) -> AcceptanceRecord:
    """The record of a report that has just been received."""
    failed = sorted(node for node, verdict in report.verdicts.items() if verdict is Verdict.FAIL)
    return AcceptanceRecord(
        id=blake2b(report.model_dump_json().encode(), digest_size=_DIGEST_BYTES).hexdigest(),
        suite=report.suite,
        verdict=report.verdict,
        cause=report.cause,
        nodes=len(report.nodes),
        failed=len(failed),
        failed_nodes=tuple(failed[:MOST_FAILED_NAMED]),
        without_gpu=len(report.without_gpu),
        simulated=report.simulated,
        started_at=report.started_at,
        duration_s=report.duration_s,
        muster_version=report.muster_version,
        received_at=received_at,
        sent_by=sent_by,
        report=report,
    )
