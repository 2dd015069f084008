"""Which reference applied to each metric of a run, and why the others did not."""

from collections.abc import Iterable

from muster.model import Data, Metric, Run, Verdict
from muster.references import Considered, Reference, explain


class ExplainedMetric(Data):
    """A metric for which there are references: what was measured, and what became of each of them."""

    metric: str
    value: Metric
    considered: tuple[Considered, ...]


class ExplainedRun(Data):
    """What was considered for the metrics of a run; for those in `without_reference` there is nothing at all."""

    run: str
    node: str
    check: str
    verdict: Verdict
    metrics: tuple[ExplainedMetric, ...]
    without_reference: tuple[str, ...]


def explain_run(run: Run, rows: Iterable[Reference]) -> ExplainedRun:
    """What these references, which may be newer than the run, say to it."""
    considered = explain(rows, run.check, run.facts)
    return ExplainedRun(
        run=run.id,
        node=run.node,
        check=run.check,
        verdict=run.verdict,
        metrics=tuple(
            ExplainedMetric(metric=metric, value=value, considered=considered[metric])
            for metric, value in run.metrics.items()
            if metric in considered
        ),
        without_reference=tuple(metric for metric in run.metrics if metric not in considered),
    )
