"""The words of muster as data: what is measured, what was found, and what a node is made of.

Everything here is frozen and travels as JSON: over MQTT, through the HTTP API and into the database.
Times are seconds since the epoch in Python and ISO 8601 in UTC in JSON.
"""

import math
import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, PlainSerializer

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
    Field(ge=0, lt=253_402_300_800, allow_inf_nan=False),  # what ISO 8601 can write: to the end of the year 9999
    BeforeValidator(parse_instant),  # behind the bounds, which are only quick where they stand next to the float
    PlainSerializer(format_instant, return_type=str, when_used="json"),
]

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]

Name = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""The name of a node, fleet or check, or an id: safe as one MQTT topic level, one URL segment and one file name."""

Sequence = Annotated[int, Field(ge=0, lt=1 << 53)]
"""A number in a stream of runs, exact in every database and every JSON reader."""


class Data(BaseModel):
    """Frozen data that ignores fields it does not know, so that newer peers can say more."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Verdict(StrEnum):
    """What a run says."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"
    SKIPPED = "SKIPPED"


EXIT_CODES = {Verdict.PASS: 0, Verdict.SKIPPED: 0, Verdict.WARN: 1, Verdict.FAIL: 2, Verdict.UNKNOWN: 3}
"""What a command that ends with a verdict exits with."""


class Severity(StrEnum):
    """What a finding weighs. SKIPPED names something that could not be measured here."""

    INFO = "INFO"
    SKIPPED = "SKIPPED"
    WARNING = "WARNING"
    UNKNOWN = "UNKNOWN"
    ERROR = "ERROR"


class Action(StrEnum):
    """What a person, or later an actor, should do about a finding; ordered from nothing to most."""

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
    """What we decided to do about a node."""

    ACCEPTING = "ACCEPTING"
    IN_SERVICE = "IN_SERVICE"
    HELD = "HELD"
    CORDONED = "CORDONED"
    PROBATION = "PROBATION"


class Device(Data):
    """One GPU, or a stand-in for one that says so in `simulated`."""

    index: int
    uuid: str
    model: str
    pci_address: str | None = None
    memory_bytes: int = 0
    simulated: bool = False


class Topology(Data):
    """Where a node stands, from the widest domain to the narrowest. None where nobody said."""

    block: str | None = None
    rack: str | None = None
    leaf: str | None = None
    host: str | None = None

    def or_else(self, other: "Topology") -> "Topology":
        """What is said here and, at levels where nothing is, what `other` says."""
        return Topology(**{**dict(other), **{level: place for level, place in self if place is not None}})


MOST_LABELS = 512
"""Kubernetes sets no limit; discovery of features makes some 200, and so many fit into a message."""

LABEL_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""What stands in the key of a label, behind the prefix if there is one."""

_LABEL_KEY = re.compile(rf"([A-Za-z0-9.-]{{1,253}}/)?{LABEL_NAME.pattern}")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9._-]{0,63}")


def valid_labels(labels: dict[str, str]) -> dict[str, str]:
    """The labels as they are; ValueError for what Kubernetes would not take as labels either, and for too many."""
    if len(labels) > MOST_LABELS:
        raise ValueError(f"holds {len(labels)} labels, at most {MOST_LABELS} are taken")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise ValueError(f"{key[:80]!r} is no key of a label, for example topology.kubernetes.io/rack")
        if not _LABEL_VALUE.fullmatch(value):
            raise ValueError(
                f"label {key!r} has the value {value[:80]!r}: up to 63 letters, digits and . _ - are taken"
            )
    return labels


class Inventory(Data):
    """What a node is made of, as its agent found it."""

    devices: tuple[Device, ...] = ()
    machine_type: str | None = None
    topology: Topology = Topology()
    labels: Annotated[dict[str, str], AfterValidator(valid_labels)] = {}
    software: dict[str, str] = {}


class Finding(Data):
    """One thing that a check found, with what to do about it.

    `code` is `<check>.<what>`, `run.<what>` or `baseline.<what>` and stable: policies and dashboards are keyed by it.
    `device` is the device index, or None when the finding is about the node.
    """

    code: str
    summary: str
    severity: Severity
    device: int | None = None
    action: Action = Action.NONE
    evidence: Json = {}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


_Number = Annotated[float | None, AfterValidator(_finite)]

Metric = _Number | list[_Number]
"""A number, or one number per device in device order. None stands for NaN and infinity, which JSON lacks."""


class Measurement(Data):
    """The numbers of one run (`metrics`) and what else judging needs: versions, states, counts by name (`facts`).

    Two facts are shown to people by reports: `table`, a text as it is, and `curves`, a list of objects with `title`,
    `x_label`, `y_label` and the lists of numbers `x` and `y`.
    """

    metrics: dict[str, Metric] = {}
    facts: Json = {}


class RankResult(Data):
    """What one rank of a run says for itself. A run of scope NODE has exactly one, with rank 0."""

    rank: int
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    metrics: dict[str, Metric] = {}
    facts: Json = {}
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
    findings: tuple[Finding, ...] = ()
    metrics: dict[str, Metric] = {}
    facts: Json = {}
    params: Json = {}
    started_at: Instant
    duration_s: Seconds
    seq: Sequence = 0
    group: Name | None = None
    cause: str | None = None
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
    """The verdict of several runs or ranks together; of none, SKIPPED.

    SKIPPED counts least: it only stands when nothing was measured at all.
    """
    return max(verdicts, key=_FROM_BEST_TO_WORST.index, default=Verdict.SKIPPED)


def verdict_of(findings: tuple[Finding, ...]) -> Verdict:
    """The verdict of a run that measured something and found `findings`; PASS when it found nothing."""
    return worst([Verdict.PASS, *(_VERDICT_OF_SEVERITY[finding.severity] for finding in findings)])
