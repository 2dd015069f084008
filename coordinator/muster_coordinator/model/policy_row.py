"""One row of a policy: which findings match, and what follows."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, Self

from pydantic import Field, model_validator

from muster.conditions import Condition, is_met
from muster.model import Action, Data, Name, ServiceState, Severity
from muster_coordinator.model.findings import Proof, StandingFinding

MATCHED_BY_SEVERITY: Mapping[str, frozenset[Severity]] = {
    Severity.WARNING: frozenset({Severity.WARNING, Severity.ERROR}),
    Severity.ERROR: frozenset({Severity.ERROR}),
}
"""By the minimum severity of a row, the severities that match. UNKNOWN never matches."""

_OF_THE_NODE = frozenset({Proof.ONCE, Proof.TWICE, Proof.LOCALISED})

MATCHED_BY_PROOF = {
    Proof.ONCE: _OF_THE_NODE,
    Proof.TWICE: _OF_THE_NODE,
    Proof.LOCALISED: frozenset({Proof.LOCALISED}),
    Proof.COMPARED: frozenset({Proof.COMPARED}),
}
"""By the proof that a row wants, the proofs of the findings that it matches, well founded or not yet."""

DAY_S = 86_400

MOST_REPEATS = 32
"""Largest value of `repeats`. Further sightings of a finding are not counted."""

_ONLY_TO_DRAIN = ("repeats", "within_s", "after_s", "fresh_s", "action", "urgency")


class Row(Data, extra="forbid"):
    """One row of a policy. Times are in seconds."""

    name: Name = Field(description="Name of the row, as decisions and `without` show it")
    codes: tuple[str, ...] = Field(
        min_length=1, description="Codes of findings; `*` stands for any text, as in `*.xid`, here and in `checks`"
    )
    checks: tuple[str, ...] = Field(("*",), min_length=1, description="Checks whose findings match")
    when: dict[str, Condition] = Field(
        {}, description="Conditions on the evidence of the finding, as in references: `{ xid = [79, 119] }`"
    )
    severity: Literal["WARNING", "ERROR"] = Field("ERROR", description="Minimum severity of the findings")
    proof: Proof = Field(
        Proof.TWICE,
        description="ONCE: found by one run, for faults that are fatal; TWICE: found by two runs, or by a sweep; "
        "LOCALISED: convicted by a sweep; COMPARED: found by comparison with the fleet or the past",
    )
    repeats: int = Field(
        1, ge=1, le=MOST_REPEATS, description="Number of runs that must have found it within `within_s`"
    )
    within_s: float | None = Field(None, gt=0, le=30 * DAY_S, allow_inf_nan=False, description="Seconds for `repeats`")
    after_s: float = Field(
        0.0, ge=0, le=30 * DAY_S, allow_inf_nan=False, description="Seconds that the finding must have stood"
    )
    fresh_s: float = Field(
        3600.0,
        ge=1,
        le=365 * DAY_S,
        allow_inf_nan=False,
        description="Seconds after which a run must have found it again",
    )
    service: Literal["CORDONED", "IN_SERVICE"] = Field(
        "CORDONED", description="IN_SERVICE: does not drain, whatever later rows say"
    )
    action: Action | None = Field(None, description="Recommended action; unset: that of the finding")
    urgency: int = Field(
        50, ge=0, le=100, description="Of two waiting nodes, the one with the higher urgency is drained first"
    )
    reason: str = Field(min_length=1, description="Why, in a sentence")
    source: str = Field("the operator", description="Where the rule comes from")

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if (self.repeats > 1) != (self.within_s is not None):
            raise ValueError("repeats and within_s go together: set both, and repeats to 2 or more")
        usual = type(self).model_fields
        moot = [name for name in _ONLY_TO_DRAIN if getattr(self, name) != usual[name].default]
        if moot and not self.drains:
            raise ValueError(f"service = 'IN_SERVICE' drains no node, so {', '.join(moot)} has no effect: leave it out")
        return self

    @property
    def drains(self) -> bool:
        """Whether it drains nodes."""
        return self.service == ServiceState.CORDONED

    def names(self, check: str, code: str) -> bool:
        """Whether it is about findings with this code of this check."""
        return _is_any(code, self.codes) and _is_any(check, self.checks)

    def matches(self, finding: StandingFinding) -> bool:
        """Whether it decides about the finding, unless a row before it does."""
        return (
            finding.severity in MATCHED_BY_SEVERITY[self.severity]
            and finding.proof in MATCHED_BY_PROOF[self.proof]
            and self.names(finding.check, finding.code)
            and all(is_met(condition, finding.evidence.get(name)) for name, condition in self.when.items())
        )


@lru_cache(maxsize=16_384)  # there are few codes and rows, and a storm of findings asks the same again and again
def _is_any(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
