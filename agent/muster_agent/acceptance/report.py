"""The report of an acceptance as data. `report.json` has exactly this content; all other formats are made from it."""

from collections.abc import Iterable, Mapping

import muster
from muster.model import Data, Instant, Inventory, Run, Seconds, Verdict, worst


class StepReport(Data):
    """One step with its runs: one for each node, or for each process of a group."""

    section: str
    check: str
    summary: str
    verdict: Verdict
    duration_s: Seconds
    runs: tuple[Run, ...]


class NodeReport(Data):
    """A node that took part."""

    name: str
    inventory: Inventory


class AcceptanceReport(Data):
    """A whole acceptance. `simulated` is true if any of it was measured on simulated devices."""

    suite: str
    verdict: Verdict
    started_at: Instant
    duration_s: Seconds
    nodes: tuple[NodeReport, ...]
    steps: tuple[StepReport, ...]
    simulated: bool
    muster_version: str = muster.__version__

    @property
    def without_gpu(self) -> list[str]:
        """The nodes without a GPU. The report must not show them as healthy GPU nodes."""
        return [node.name for node in self.nodes if not node.inventory.devices]

    @property
    def sections(self) -> dict[str, list[StepReport]]:
        """The steps by section, in the order of each section's first step."""
        found: dict[str, list[StepReport]] = {}
        for step in self.steps:
            found.setdefault(step.section, []).append(step)
        return found


def step_report(section: str, check: str, summary: str, runs: Iterable[Run]) -> StepReport:
    """The report of a step. Its duration is that of its longest run, because the runs are concurrent."""
    all_runs = tuple(runs)
    return StepReport(
        section=section,
        check=check,
        summary=summary,
        verdict=worst([run.verdict for run in all_runs]),
        duration_s=max((run.duration_s for run in all_runs), default=0.0),
        runs=all_runs,
    )


def report(
    suite: str, steps: Iterable[StepReport], nodes: Mapping[str, Inventory], started_at: float, duration_s: float
) -> AcceptanceReport:
    """The report of a suite."""
    all_steps = tuple(steps)
    return AcceptanceReport(
        suite=suite,
        verdict=worst([step.verdict for step in all_steps]),
        started_at=started_at,
        duration_s=duration_s,
        nodes=tuple(NodeReport(name=name, inventory=inventory) for name, inventory in nodes.items()),
        steps=all_steps,
        simulated=any(run.simulated for step in all_steps for run in step.runs),
    )
