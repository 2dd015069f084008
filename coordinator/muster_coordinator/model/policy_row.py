"""One row of a policy: which findings it is about and what it asks for."""

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
"""By the least severity of a row, those that it matches; UNKNOWN is nowhere among them."""

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
"""More sightings of the same finding than that no row counts."""

_ONLY_TO_TAKE_OUT = ("repeats", "within_s", "after_s", "fresh_s", "action", "urgency")


class Row(Data, extra="forbid"):
    """One row of a policy. Times are in seconds."""

    name: Name = Field(description="What it is called, in demands and in `without`")
    codes: tuple[str, ...] = Field(
        min_length=1, description="Codes of findings; `*` stands for any text, as in `*.xid`, here and in `checks`"
    )
    checks: tuple[str, ...] = Field(("*",), min_length=1, description="The checks that must have found them")
    when: dict[str, Condition] = Field(
        {}, description="Conditions on the evidence of the finding, as in references: `{ xid = [79, 119] }`"
    )
    severity: Literal["WARNING", "ERROR"] = Field("ERROR", description="The least severity that it is about")
    proof: Proof = Field(
        Proof.TWICE,
        description="ONCE: found by one run, for what is fatal by nature; TWICE: by two, or by a sweep; "
        "LOCALISED: only what sweeps convict of; COMPARED: only what comparing with the fleet and with the past finds",
    )
    repeats: int = Field(1, ge=1, le=MOST_REPEATS, description="So many runs must have found it within `within_s`")
    within_s: float | None = Field(None, gt=0, le=30 * DAY_S, allow_inf_nan=False, description="See `repeats`")
    after_s: float = Field(0.0, ge=0, le=30 * DAY_S, allow_inf_nan=False, description="So long it must have stood")
    fresh_s: float = Field(
        3600.0, ge=1, le=365 * DAY_S, allow_inf_nan=False, description="What was found longer ago must be found again"
    )
    service: Literal["CORDONED", "IN_SERVICE"] = Field(
        "CORDONED", description="IN_SERVICE: does not drain, whatever the rows behind it say"
    )
    action: Action | None = Field(None, description="What should be done; unset: what the finding says")
    urgency: int = Field(50, ge=0, le=100, description="Of two nodes, the one with the higher goes first")
    reason: str = Field(min_length=1, description="Why, in a sentence for people")
    source: str = Field("the operator", description="Who says so")

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if (self.repeats > 1) != (self.within_s is not None):
            raise ValueError("repeats and within_s go together: so many runs (2 or more) within so many seconds")
        usual = type(self).model_fields
        moot = [name for name in _ONLY_TO_TAKE_OUT if getattr(self, name) != usual[name].default]
        if moot and not self.takes_out:
            raise ValueError(f"keeps nodes in service, so that {', '.join(moot)} would mean nothing: leave it out")
        return self

    @property
    def takes_out(self) -> bool:
        """Whether it takes nodes out of service."""
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
