"""Finds the devices that are out of line with the others of the same job. Pure.

A reference says what is too slow anywhere. Where there is none, or a generous one, the nodes of a job still show what
is usual for them. Only devices of the same model are compared, in the same step, so with the same parameters.

- A device is an outlier if a metric is more than 10 % worse than the median of all devices, and more than five spreads.
  The spread is 1.4826 times the median distance from the median, which is the standard deviation of normal values.
- A device differs if it has other bits than more than half of the devices with the same software.

Example: 32 devices multiply at 690 to 705 TFLOP/s, with a median of 700 and a spread of 4. The limit is 10 %: a device
at 620 is an outlier. If the spread were 20, the limit would be 14 %, and the device would pass.

Neither is proof, so both are warnings. With fewer than three nodes nobody can tell which of them is the odd one.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from muster.check import Worse
from muster.model import Action, Finding, Json, Metric, Run, Severity, Verdict, worst

LEAST_NODES = 3
"""Of two that differ, either may be the odd one."""

TOO_MUCH_WORSE = 0.1
"""Acceptance playbooks for GPU clusters call a device failed that is more than 10 % below its baseline."""

TOO_MANY_SPREADS = 5.0
"""Among a million normally distributed values, none is five standard deviations worse at random."""

ROBUST = 1.4826
"""The median absolute deviation times this is the standard deviation of normally distributed values."""


T = TypeVar("T")


class _Compared(NamedTuple, Generic[T]):
    """The value of one device; `run` is the position of its run, and `device` None for the node as a whole."""

    run: int
    device: int | None
    value: T


def with_outliers(runs: Sequence[Run], compared: Mapping[str, Worse]) -> list[Run]:
    """The runs of one step, with findings about devices that are out of line with the others."""
    found: dict[int, list[Finding]] = defaultdict(list)
    for metric, worse in compared.items():
        for values in _values(runs, metric).values():
            if _on_enough_nodes(runs, values):
                for position, finding in _outliers(metric, worse, values):
                    found[position].append(finding)
    for (name, _, _), results in _results(runs).items():
        if _on_enough_nodes(runs, results):
            for position, finding in _differing(name, results):
                found[position].append(finding)
    return [_with_findings(run, found.get(position, [])) for position, run in enumerate(runs)]


def _with_findings(run: Run, findings: list[Finding]) -> Run:
    if not findings:
        return run
    update = {"findings": (*run.findings, *findings), "verdict": worst([run.verdict, Verdict.WARN])}
    return run.model_copy(update=update)


def _on_enough_nodes(runs: Sequence[Run], values: Sequence[_Compared[T]]) -> bool:
    return len({runs[each.run].node for each in values}) >= LEAST_NODES


def _values(runs: Sequence[Run], metric: str) -> dict[str, list[_Compared[float]]]:
    """The values of a metric by model of the device. Simulated devices share a CPU, so their speeds say nothing."""
    found: dict[str, list[_Compared[float]]] = defaultdict(list)
    for position, run in enumerate(runs):
        if run.simulated:
            continue
        for device, model, value in _by_device(run, run.metrics.get(metric)):
            if isinstance(value, int | float):
                found[model].append(_Compared(position, device, value))
    return found


def _results(runs: Sequence[Run]) -> dict[tuple[str, str, str], list[_Compared[str]]]:
    """The fingerprints of devices by the name of the computation, the model of the device, and the software."""
    found: dict[tuple[str, str, str], list[_Compared[str]]] = defaultdict(list)
    for position, run in enumerate(runs):
        fingerprints = run.facts.get("fingerprints")
        software = json.dumps(run.facts.get("software"), sort_keys=True)
        for name, results in fingerprints.items() if isinstance(fingerprints, dict) else ():
            for device, model, bits in _by_device(run, results):
                if isinstance(bits, str):
                    found[name, model, software].append(_Compared(position, device, bits))
    return found


def _by_device(run: Run, values: Metric | JsonValue) -> Iterator[tuple[int | None, str, JsonValue]]:
    """The index and model of each device with its value; a single value is about the node as a whole."""
    if not isinstance(values, list):
        yield None, str(run.facts.get("gpu_model", "")), values
        return
    devices, models = run.facts.get("devices"), run.facts.get("models")
    if isinstance(devices, list) and isinstance(models, list) and len(devices) == len(models) == len(values):
        for device, model, value in zip(devices, models, values, strict=True):
            yield device if isinstance(device, int) else None, str(model), value


def _outliers(metric: str, worse: Worse, values: Sequence[_Compared[float]]) -> Iterator[tuple[int, Finding]]:
    centre = median(each.value for each in values)
    if centre <= 0:
        return
    spread = ROBUST * median(abs(each.value - centre) for each in values) / centre
    limit = max(TOO_MUCH_WORSE, TOO_MANY_SPREADS * spread)
    for each in values:
        share = (centre - each.value if worse is Worse.LOWER else each.value - centre) / centre
        if share > limit:
            summary = f"{metric} {each.value:.4g} is {share:.1%} worse than the {centre:.4g} that is usual in this job"
            evidence: Json = {"metric": metric, "value": each.value, "centre": centre, "compared": len(values)}
            yield each.run, _finding("outlier", summary, each.device, evidence)


def _differing(name: str, results: Sequence[_Compared[str]]) -> Iterator[tuple[int, Finding]]:
    ((most, times),) = Counter(each.value for each in results).most_common(1)
    if 2 * times <= len(results):
        return
    for each in results:
        if each.value != most:
            summary = f"other bits than {times} of {len(results)} devices of this job in {name}"
            evidence: Json = {"bits": each.value, "majority": most, "in_majority": times}
            yield each.run, _finding("result_differs", summary, each.device, evidence)


def _finding(what: str, summary: str, device: int | None, evidence: Json) -> Finding:
    return Finding(
        code=f"run.{what}",
        summary=summary,
        severity=Severity.WARNING,
        device=device,
        action=Action.INSPECT_HARDWARE,
        evidence=evidence,
    )
