"""The check `kernel_log`: errors of devices, drivers and memory in the kernel's log, as soon as they appear.

The rules are in `rules.toml`, `xids.toml` and `sxids.toml`. An event remains a finding until the node is rebooted, the
device is reset, or the event has not been seen for a while. Equal events are one finding with a count.

Standing events are kept in `kernel_log.json` in the agent's `data_dir`. After a repair, an operator clears them with
`muster check clear kernel_log`, which touches `kernel_log.cleared` there: earlier events do not count.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pydantic import Field

from muster import (
    Action,
    Check,
    Config,
    Context,
    Finding,
    Measurement,
    Reference,
    Scope,
    Section,
    Severity,
    Skip,
    hookimpl,
    judge_value,
)
from muster.model import Data, Instant, Json, format_instant
from muster_plugins.checks.kernel_log.drivers import driver_table
from muster_plugins.checks.kernel_log.event_file import StandingEventsFile
from muster_plugins.checks.kernel_log.events import normal_address
from muster_plugins.checks.kernel_log.log_reader import KernelLog, KernelLogLook
from muster_plugins.checks.kernel_log.rules import rule_table
from muster_plugins.checks.kernel_log.source import LogUnavailable
from muster_plugins.checks.kernel_log.standing import CROWDED, LOST, UNREADABLE, StandingEvent, StandingTimes
from muster_plugins.shared.no_params import NoParams
from muster_plugins.shared.real_node import must_be_real

NAME = "kernel_log"

_RULES = tuple(rule for group in rule_table().group for rule in group.rule)

FINDS = {
    **{f"{NAME}.{rule.code}": rule.summary for rule in _RULES},
    **{f"{NAME}.{part.code}": part.summary for part in driver_table().part},
    **{f"{NAME}.{event.code}": event.summary for event in (LOST, UNREADABLE, CROWDED)},
    f"{NAME}.no_access": "neither the kernel's log nor the journal can be read",
    f"{NAME}.not_kept": "events cannot be stored, so they are forgotten when the agent restarts",
}

RATES = tuple(sorted({rule.rate.metric for rule in _RULES if rule.rate}))
"""Metrics: the number of events of a kind within the period of its rate, on the device with the most."""


class KernelLogSettings(Section):
    """The table `[plugins.kernel_log]`."""

    kmsg: Path = Field(Path("/dev/kmsg"), description="The kernel's log")
    journalctl: Path = Field(
        Path("journalctl"), description="The journalctl executable, used if the log itself cannot be read"
    )
    error_stands_s: float = Field(86_400.0, ge=60, description="Seconds that an error stands after it was seen last")
    other_stands_s: float = Field(3_600.0, ge=60, description="Seconds that any other event stands")


class JudgedEvent(Data):
    """One kind of event to judge. `recent` is the number within the period of the metric `rate`, if any."""

    code: str
    summary: str
    severity: Severity
    action: Action
    source: str
    address: str | None
    name: str | None
    number: int | None
    device: int | None
    count: int
    first: Instant
    last: Instant
    line: str
    rate: str | None
    recent: float


class KernelLogReading(Data):
    """The result of one look. `unavailable` says why the log is unreadable, `forgetful` why nothing is kept."""

    told: tuple[JudgedEvent, ...] = ()
    unavailable: str | None = None
    forgetful: str | None = None


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """A finding for each kind of standing event. The severity of corrected errors depends on their recent number."""
    reading = KernelLogReading.model_validate(measurement.facts)
    findings = [_finding(event, references) for event in reading.told]
    if reading.unavailable is not None:
        summary = f"the kernel log cannot be read: {reading.unavailable}"
        findings.append(Finding(code=f"{NAME}.no_access", summary=summary, severity=Severity.UNKNOWN))
    if reading.forgetful is not None:
        summary = f"events of the kernel log are forgotten when the agent restarts: {reading.forgetful}"
        findings.append(Finding(code=f"{NAME}.not_kept", summary=summary, severity=Severity.INFO))
    return findings


def _finding(event: JudgedEvent, references: Mapping[str, Reference]) -> Finding:
    severity, action, evidence = event.severity, event.action, _evidence(event)
    if event.rate is not None:
        action = Action.NONE
        for judged in judge_value(event.recent, references.get(event.rate), code=NAME):
            severity, action = judged.severity, event.action
            evidence |= judged.evidence
    device = event.address or event.name
    where = f" ({device})" if device and event.device is None else ""
    times = f", {event.count} times" if event.count > 1 else ""
    return Finding(
        code=f"{NAME}.{event.code}",
        summary=f"{event.summary}{where}{times}",
        severity=severity,
        device=event.device,
        action=action,
        evidence=evidence,
    )


def _evidence(event: JudgedEvent) -> Json:
    """The evidence, with the code of an XID or SXid under that name."""
    known: Json = {event.code: event.number, "address": event.address, "name": event.name, "line": event.line or None}
    return {
        **{name: value for name, value in known.items() if value is not None},
        "count": event.count,
        "first": format_instant(event.first),
        "last": format_instant(event.last),
        "source": event.source,
    }


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, KernelLogSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[NoParams]]:
    settings = config.plugin(NAME, KernelLogSettings)
    data_dir = config.settings.data_dir
    log = KernelLog(
        kmsg=settings.kmsg,
        journalctl=settings.journalctl,
        windows=StandingTimes(error_s=settings.error_stands_s, other_s=settings.other_stands_s),
        memory=StandingEventsFile(data_dir / f"{NAME}.json"),
        cleared=data_dir / f"{NAME}.cleared",
    )
    return [
        Check(
            name=NAME,
            summary="What the kernel says: XIDs, lost GPUs, PCIe, NVSwitch, network adapters, memory, disks",
            scope=Scope.NODE,
            params=NoParams,
            measure=partial(measure, log),
            judge=judge,
            timeout_s=15.0,
            cadence_s=20.0,
            resident=True,
            watch=log.watch,
            clear=log.clear,
            judged=RATES,
            finds=FINDS,
            cost_s=0.01,
            precedent="gpud, NVSentinel, node-problem-detector",
        )
    ]


def measure(log: KernelLog, params: NoParams, context: Context) -> Measurement:
    """Reads the new part of the log. Raises Skip on a simulated node, and without GPUs if there is no log."""
    must_be_real(context)
    try:
        look = log.look()
    except LogUnavailable as error:
        if not context.devices and not context.expected_gpus:
            raise Skip(f"no GPU here, and the kernel log cannot be read: {error}") from None
        return Measurement(facts=KernelLogReading(unavailable=str(error)).model_dump(mode="json"))
    events = tuple(_judged_event(entry, look, context) for entry in look.standing.entries)
    return Measurement(
        metrics={metric: max((each.recent for each in events if each.rate == metric), default=0.0) for metric in RATES},
        facts=KernelLogReading(told=events, forgetful=log.forgetful).model_dump(mode="json"),
    )


def _judged_event(entry: StandingEvent, look: KernelLogLook, context: Context) -> JudgedEvent:
    event = entry.event
    indices = {normal_address(device.pci_address or ""): device.index for device in context.devices}
    return JudgedEvent(
        code=event.code,
        summary=event.summary,
        severity=event.severity,
        action=event.action,
        source=event.source,
        address=event.address,
        name=event.name,
        number=event.number,
        device=indices.get(event.address) if event.address else None,
        count=entry.count,
        first=max(0.0, look.booted_at + entry.first_s),
        last=max(0.0, look.booted_at + entry.last_s),
        line=entry.sample,
        rate=event.rate.metric if event.rate else None,
        recent=entry.recent_at(look.now_s),
    )
