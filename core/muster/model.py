"""The shared data of muster: measurements, findings, runs and inventories.

All of it is frozen and is sent as JSON: over MQTT, through the HTTP API and into the database.
Times are seconds since the epoch in Python and ISO 8601 in UTC in JSON.
"""

import math
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import pydantic_core
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    WithJsonSchema,
)

from muster.labels import valid_labels
from muster.texts import Label, Text

Json = dict[str, JsonValue]


def parse_instant(value: Any) -> Any:
    """Seconds since the epoch from an ISO 8601 string; numbers pass through."""
    if not isinstance(value, str):
        return value
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("a time needs a time zone, for example 2026-01-31T12:00:00Z")
    return moment.timestamp()


def format_instant(seconds: float) -> str:
    """ISO 8601 in UTC with milliseconds, for example `2026-01-31T12:00:00.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Instant = Annotated[
    float,
    Field(ge=0, lt=253_402_300_800, allow_inf_nan=False),  # ISO 8601 ends with the year 9999
    BeforeValidator(parse_instant),  # after the bounds: pydantic checks them fast only next to the float
    PlainSerializer(format_instant, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),  # numbers are for Python and the database only
]

Seconds = Annotated[float, Field(ge=0, le=366 * 86_400, allow_inf_nan=False)]
"""A duration of at most a year. A time plus such a duration is still a valid time."""

TotalSeconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""The sum of durations of several steps, rounds or nodes, which may be more than a year."""

Name = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""The name of a node, fleet or check, or an id: safe as one MQTT topic level, one URL segment and one file name."""

Sequence = Annotated[int, Field(ge=0, lt=1 << 53)]
"""A number in a stream of runs, exact in every database and every JSON reader."""

MOST_WAITING = 1_000_000
"""Maximum number of runs in the outbox of one node: a hundred times what an outbox keeps by default."""

Code = Annotated[str, Field(max_length=200, pattern=r"^[!-~]+$")]
"""The name of a finding or metric in policies, dashboards and programs: printable ASCII without spaces."""

MOST_VALUES = 100_000
"""Maximum number of values in one JSON object. The largest of a built-in check, a curve over sizes, has about a
hundred.
"""

DEEPEST = 32
"""Maximum nesting of one JSON object."""

LARGEST_INTEGER = 1 << 63
"""Largest absolute value of an integer; databases and other languages do not take larger ones."""


def _plain(value: Json) -> Json:
    """The value with null for NaN and infinities. ValueError for too many values, levels or bits of an integer."""
    values, lacks = 0, False
    level: list[JsonValue] = [value]
    for _ in range(DEEPEST):
        deeper: list[JsonValue] = []
        for item in level:
            if isinstance(item, dict):
                deeper.extend(item.values())
            elif isinstance(item, list):
                deeper.extend(item)
            elif isinstance(item, float):
                lacks = lacks or not math.isfinite(item)
            elif isinstance(item, int) and abs(item) > LARGEST_INTEGER:
                raise ValueError("holds an integer of more than 64 bits")
        values += len(deeper)
        if values > MOST_VALUES:
            raise ValueError(f"holds more than {MOST_VALUES} values; send fewer")
        if not deeper:
            return pydantic_core.from_json(pydantic_core.to_json(value, inf_nan_mode="null")) if lacks else value
        level = deeper
    raise ValueError(f"is nested more than {DEEPEST} levels deep")


PlainJson = Annotated[Json, AfterValidator(_plain)]
"""A JSON object of bounded size and depth, with numbers that every reader of JSON takes."""


class Data(BaseModel):
    """Frozen data that ignores unknown fields, so that newer peers can add fields."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Verdict(StrEnum):
    """The result of a run."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"
    SKIPPED = "SKIPPED"


EXIT_CODES = {Verdict.PASS: 0, Verdict.SKIPPED: 0, Verdict.WARN: 1, Verdict.FAIL: 2, Verdict.UNKNOWN: 3}
"""The exit code of a command that ends with a verdict."""


class Severity(StrEnum):
    """How bad a finding is. SKIPPED means that something could not be measured here."""

    INFO = "INFO"
    SKIPPED = "SKIPPED"
    WARNING = "WARNING"
    UNKNOWN = "UNKNOWN"
    ERROR = "ERROR"


class Action(StrEnum):
    """What a person should do about a finding, from nothing to the most."""

    NONE = "NONE"
    CHECK_APPLICATION = "CHECK_APPLICATION"
    RESET_GPU = "RESET_GPU"
    REBOOT_NODE = "REBOOT_NODE"
    INSPECT_HARDWARE = "INSPECT_HARDWARE"
    REPLACE = "REPLACE"


class Health(StrEnum):
    """What the evidence says about a node."""

    UNKNOWN = "UNKNOWN"
    HEALTHY = "HEALTHY"
    DEGRADED = "DEGRADED"
    SUSPECT = "SUSPECT"
    FAILED = "FAILED"


class ServiceState(StrEnum):
    """What muster has decided about a node."""

    ACCEPTING = "ACCEPTING"
    IN_SERVICE = "IN_SERVICE"
    HELD = "HELD"
    CORDONED = "CORDONED"
    PROBATION = "PROBATION"


MOST_DEVICES = 128
"""Maximum number of devices of one node. Sixteen GPUs with seven instances each are 112."""


class Device(Data):
    """One GPU, real or `simulated`. `serial` is the number on its board, which the vendor asks for; None if unknown."""

    index: int = Field(ge=0, lt=MOST_DEVICES)
    uuid: Label
    model: Label
    serial: Label | None = None
    pci_address: Label | None = None
    memory_bytes: int = Field(0, ge=0, lt=LARGEST_INTEGER)
    simulated: bool = False


class Topology(Data):
    """The place of a node, from the widest domain to the narrowest; None if unknown."""

    block: Label | None = None
    rack: Label | None = None
    leaf: Label | None = None
    host: Label | None = None

    def or_else(self, other: "Topology") -> "Topology":
        """The same place with unknown levels filled in from `other`."""
        return Topology(**{**dict(other), **{level: place for level, place in self if place is not None}})


class MachineTypeSource(StrEnum):
    """Where a machine type is from. Each source has precedence over those after it."""

    SETTING = "setting"
    LABEL = "label"
    PLUGIN = "plugin"
    CLOUD = "cloud"
    DMI = "dmi"


class MachineType(Data):
    """What one source says that the machine type of a node is; `said_by` names the setting, label, cloud or file."""

    name: Label
    source: MachineTypeSource
    said_by: Label


MOST_NAMES = 256
"""Maximum number of checks, plugins or programs of one node, and of metrics of one run."""


class Inventory(Data):
    """The hardware and software of a node, as its agent found it.

    `machine_types` has what each source says, by precedence; `machine_type` is the first. While it is unknown,
    `waiting_references` names the metrics with references that are only for certain machine types. `leaving` says why
    the node leaves or restarts as planned.
    """

    devices: tuple[Device, ...] = Field((), max_length=MOST_DEVICES)
    machine_type: Label | None = None
    machine_types: tuple[MachineType, ...] = Field((), max_length=MOST_NAMES)
    waiting_references: tuple[Label, ...] = Field((), max_length=MOST_NAMES)
    topology: Topology = Topology()
    labels: Annotated[dict[str, str], AfterValidator(valid_labels)] = {}
    software: dict[Label, Label] = Field({}, max_length=MOST_NAMES)
    leaving: Text | None = None


class Finding(Data):
    """One problem or remark of a check, with the recommended action.

    `code` is `<check>.<what>`, `run.<what>` or `baseline.<what>` and stable: policies and dashboards are keyed by it.
    `device` is the device index, or None if the finding is about the node.
    """

    code: Code
    summary: Text
    severity: Severity
    device: int | None = Field(None, ge=0, lt=MOST_DEVICES)
    action: Action = Action.NONE
    evidence: PlainJson = {}


LARGEST_NUMBER = 1e30
"""No measurement is larger. Its square, and the sum of many squares, are still finite numbers."""


def _measured(value: float | None) -> float | None:
    return value if value is not None and -LARGEST_NUMBER <= value <= LARGEST_NUMBER else None


_Number = Annotated[float | None, AfterValidator(_measured)]

Metric = _Number | Annotated[list[_Number], Field(max_length=1024)]
"""A number, or one number per device in device order. None stands for NaN and infinity, which JSON lacks."""

Metrics = Annotated[dict[Code, Metric], Field(max_length=MOST_NAMES)]
"""Measured values by name."""

Findings = Annotated[tuple[Finding, ...], Field(max_length=1000)]
"""Maximum number of findings of one run; more would only repeat a fault."""


class Measurement(Data):
    """The numbers of one run (`metrics`), and other data for judging in `facts`: versions, states, counts by name.

    Reports show two facts to people: `table`, a text as it is, and `curves`, a list of objects with `title`, `x_label`,
    `y_label` and the lists of numbers `x` and `y`.
    """

    metrics: Metrics = {}
    facts: PlainJson = {}


MOST_RANKS = 1 << 20
"""Maximum number of ranks of one group: a hundred thousand nodes of eight devices are 800,000."""


class RankResult(Data):
    """The result of one rank. A run of scope NODE has exactly one, with rank 0."""

    rank: int = Field(ge=0, lt=MOST_RANKS)
    verdict: Verdict
    findings: Findings = ()
    metrics: Metrics = {}
    facts: PlainJson = {}
    duration_s: Seconds


class Run(Data):
    """One execution of a check on one node, as it is reported, stored and served.

    `seq` numbers a node's runs in the order of their reports, from 1; 0 before the run has been reported.
    `cause` is the id of the request, sweep or schedule that asked for it.
    """

    id: Name
    node: Name
    check: Name
    verdict: Verdict
    findings: Findings = ()
    metrics: Metrics = {}
    facts: PlainJson = {}
    params: PlainJson = {}
    started_at: Instant
    duration_s: Seconds
    seq: Sequence = 0
    group: Name | None = None
    cause: Label | None = None
    simulated: bool = False


_VERDICT_OF_SEVERITY = {
    Severity.INFO: Verdict.PASS,
    Severity.SKIPPED: Verdict.PASS,
    Severity.WARNING: Verdict.WARN,
    Severity.UNKNOWN: Verdict.UNKNOWN,
    Severity.ERROR: Verdict.FAIL,
}

_FROM_BEST_TO_WORST = (Verdict.SKIPPED, Verdict.PASS, Verdict.WARN, Verdict.UNKNOWN, Verdict.FAIL)


def worst(verdicts: list[Verdict]) -> Verdict:
    """The verdict of several runs or ranks together; SKIPPED for none.

    SKIPPED counts least: it is the verdict only if nothing was measured at all.
    """
    return max(verdicts, key=_FROM_BEST_TO_WORST.index, default=Verdict.SKIPPED)


def verdict_of(findings: tuple[Finding, ...]) -> Verdict:
    """The verdict of a run that measured something, from its findings; PASS without findings."""
    return worst([Verdict.PASS, *(_VERDICT_OF_SEVERITY[finding.severity] for finding in findings)])
