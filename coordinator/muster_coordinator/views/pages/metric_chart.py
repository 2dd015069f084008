"""One chart of a node's page: what its devices measured, what is expected, and what the fleet measures.

Whatever the chart draws also stands in its table, for those who cannot see it and for paper.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from muster.model import Device, Run
from muster.nouns import count
from muster.references import Origin, Reference
from muster.units import metric_text, unit_of, with_unit
from muster_coordinator.model.baselines import BaselineView
from muster_coordinator.model.history import MetricFigures
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.normal.readings import by_device, device_name
from muster_coordinator.views.pages.ages import age_text
from muster_coordinator.views.pages.finding_metric import finding_metric

LEAST_NODES = 2
"""A band is about other nodes, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """One line of the chart as a row of its table. `key` is its name in the history of the API."""

    key: str
    label: str
    uuid: str
    is_found: bool
    latest: str
    median: str
    least: str
    most: str


@dataclass(frozen=True, slots=True)
class ChartBound:
    """A limit of a reference: `fail below`, its value, and both as text with the unit."""

    name: str
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class ChartBand:
    """Where most of the fleet is, and what that means."""

    low: float
    centre: float
    high: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChart:
    """A metric of a check. `empty` says why the chart has no line; `source` and `origin` are those of the bounds."""

    check: str
    metric: str
    unit: str
    is_found: bool
    measured_at: float
    rows: tuple[DeviceRow, ...]
    bounds: tuple[ChartBound, ...]
    source: str
    origin: str
    band: ChartBand | None
    why_no_band: str
    empty: str

    @property
    def data(self) -> str:
        """What the script of the page needs to draw it, as JSON."""
        lines = {row.key: {"label": row.label, "uuid": row.uuid, "found": row.is_found} for row in self.rows}
        bounds = [{"text": bound.text, "value": bound.value} for bound in self.bounds]
        band = None if self.band is None else {"low": self.band.low, "centre": self.band.centre, "high": self.band.high}
        return json.dumps({"lines": lines, "bounds": bounds, "band": band})


def metric_chart(
    run: Run,
    metric: str,
    *,
    figures: Mapping[str, MetricFigures] | None,
    devices: Mapping[int, Device],
    findings: tuple[NodeFinding, ...],
    reference: Reference | None,
    baseline: BaselineView | None,
    at: float,
) -> MetricChart:
    """The chart of a metric of the latest `run` of its check that measured anything.

    `figures` are by device; None if they could not be read.
    """
    about = [finding for finding in findings if finding.check == run.check and finding_metric(finding) == metric]
    latest = {device_name(device): value for device, value in by_device(run.metrics.get(metric), run.facts)}
    found = {device_name(finding.device) for finding in about}
    known = figures or {}
    bounds, source, origin = _expected(metric, reference, about)
    band = _band(metric, baseline)
    return MetricChart(
        check=run.check,
        metric=metric,
        unit=unit_of(metric),
        is_found=bool(about),
        measured_at=run.started_at,
        rows=tuple(
            _row(metric, key, latest.get(key), known.get(key), devices, is_found=key in found)
            for key in sorted(latest.keys() | known.keys(), key=_order)
        ),
        bounds=bounds,
        source=source,
        origin=origin,
        band=band,
        why_no_band="" if band is not None else _why_no_band(baseline),
        empty="" if known or figures is None else _why_empty(run, latest, at),
    )


def _order(key: str) -> tuple[int, str]:
    """The node itself first, then by index."""
    return (int(key) if key else -1), key


def _row(
    metric: str,
    key: str,
    latest: float | None,
    figures: MetricFigures | None,
    devices: Mapping[int, Device],
    *,
    is_found: bool,
) -> DeviceRow:
    device = devices.get(int(key)) if key else None
    return DeviceRow(
        key=key,
        label="Node" if not key else f"GPU {key}" if device is not None else f"Device {key}",
        uuid="" if device is None else device.uuid,
        is_found=is_found,
        latest=metric_text(latest, metric),
        median=metric_text(None if figures is None else figures.median, metric),
        least=metric_text(None if figures is None else figures.least, metric),
        most=metric_text(None if figures is None else figures.most, metric),
    )


def _expected(
    metric: str, reference: Reference | None, about: list[NodeFinding]
) -> tuple[tuple[ChartBound, ...], str, str]:
    """The bounds, their source and their origin. A check's own reference is known by what a finding says of it."""
    if reference is not None:
        unit = reference.unit or unit_of(metric)
        named = [(name.replace("_", " "), value) for name, value in reference.bounds.items()]
        bounds = tuple(ChartBound(name, value, f"{name} {value:.6g} {unit}".rstrip()) for name, value in named)
        return bounds, reference.source, _origin(reference)
    for finding in about:
        value, bound, source = (finding.evidence.get(key) for key in ("value", "bound", "source"))
        if isinstance(value, int | float) and isinstance(bound, int | float) and isinstance(source, str):
            name = f"at {'least' if value < bound else 'most'}"
            return (ChartBound(name, bound, with_unit(f"{name} {bound:.6g}", metric)),), source, "as the check said"
    return (), "", ""


def _origin(reference: Reference) -> str:
    if reference.origin is Origin.SHIPPED:
        return "comes with muster"
    return f"set by {reference.set_by or 'an operator'}"


def _band(metric: str, baseline: BaselineView | None) -> ChartBand | None:
    if baseline is None or baseline.nodes < LEAST_NODES:
        return None
    low, centre, high = baseline.low, baseline.centre, baseline.high
    if low is None or centre is None or high is None:
        return None
    text = (
        f"{with_unit(f'{low:.6g} to {high:.6g}', metric)}, median {centre:.6g}: nine of ten of "
        f"{count(baseline.devices, 'device')} of {count(baseline.nodes, 'node')} under the same conditions"
    )
    return ChartBand(low, centre, high, text)


def _why_no_band(baseline: BaselineView | None) -> str:
    if baseline is None:
        return "this metric is not compared over the fleet"
    if baseline.nodes < LEAST_NODES:
        return "no other node measures it under the same conditions"
    return "no device has measured it three times yet"


def _why_empty(run: Run, latest: Mapping[str, float | None], at: float) -> str:
    if all(value is None for value in latest.values()):
        return f"The last run of {run.check} gave no number, {age_text(at - run.started_at)} ago."
    return f"Nothing was measured in this time. The last run was {age_text(at - run.started_at)} ago."
