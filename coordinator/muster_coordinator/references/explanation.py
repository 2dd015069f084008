"""Which reference applied to each metric of a run, and why the others did not."""

from collections.abc import Iterable

from muster.model import Data, Metric, Run, Verdict
from muster.references import Considered, Reference, explain


class ExplainedMetric(Data):
    """A metric with references: the measured value, and whether each reference applied and why."""

    metric: str
    value: Metric
    considered: tuple[Considered, ...]


class ExplainedRun(Data):
    """The references that were considered for the metrics of a run. `without_reference` are metrics without any."""

    run: str
    node: str
    check: str
    verdict: Verdict
    metrics: tuple[ExplainedMetric, ...]
    without_reference: tuple[str, ...]


def explain_run(run: Run, rows: Iterable[Reference]) -> ExplainedRun:
    """Explains a run by these references, which may be newer than the run."""
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
