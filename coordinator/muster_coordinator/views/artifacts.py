"""The documents that are made of sweeps, acceptances and failed runs."""

from muster.artifact import Artifact
from muster.model import Run, format_instant
from muster_coordinator.model.acceptance_records import AcceptanceRecord
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.sweeps.nccl_tests_text import nccl_tests_text
from muster_coordinator.views.sweeps.result import sweep_report
from muster_coordinator.views.sweeps.rounds import sweep_rounds


def artifacts_of_sweep(record: SweepRecord) -> tuple[Artifact, ...]:
    """The record, the report for people, and the table of nccl-tests if any rank measured a bandwidth."""
    place = f"sweeps/{_day(record.created_at)}/{record.id}"
    made = [
        Artifact(key=f"{place}/report.json", content=record.model_dump_json(indent=2) + "\n"),
        Artifact(key=f"{place}/report.txt", content=f"{sweep_report(record)}\n{sweep_rounds(record)}\n"),
    ]
    members = (member for stage in record.rounds for group in stage.groups for member in group.places)
    if any("busbw_gbps" in measured for member in members for measured in member.measured):
        made.append(Artifact(key=f"{place}/nccl-tests.txt", content=nccl_tests_text(record)))
    return tuple(made)


def artifacts_of_run(run: Run) -> tuple[Artifact, ...]:
    """The run with its findings and facts, which have the output of programs."""
    key = f"runs/{_day(run.started_at)}/{run.node}/{run.check}-{run.id}.json"
    return (Artifact(key=key, content=run.model_dump_json(indent=2) + "\n"),)


def artifacts_of_acceptance(record: AcceptanceRecord) -> tuple[Artifact, ...]:
    """The report as it was received."""
    key = f"acceptances/{_day(record.received_at)}/{record.id}.json"
    return (Artifact(key=key, content=record.report.model_dump_json(indent=2) + "\n"),)


def _day(instant: float) -> str:
    return format_instant(instant).partition("T")[0]
