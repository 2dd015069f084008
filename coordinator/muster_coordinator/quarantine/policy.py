"""Which findings take a node out of service: the policy as data, and what it asks for.

A policy is a list of rows. For every charge against a node, the first row that matches it decides, and what no row
matches takes no node out. A row matches by the code of the finding, by the check that found it, by conditions on its
evidence, by its severity and by the kind of its proof:

- what runs of the node's own checks have found and what sweeps have convicted it of, with proof ONCE or TWICE
- convictions alone, with proof LOCALISED
- comparisons with the fleet and with the node's past alone, with proof COMPARED

A row that matches still asks for nothing before the finding has stood for `after_s` and was found `repeats` times
within `within_s`. From then on it asks for the node to go, and that is proven when the charge is as well founded as
the row wants it and was found within the last `fresh_s`; until then the check must find it once more.

What could not be found out (UNKNOWN) and what was found in a group without a conviction never take a node out: no row
matches the one, and the other is no charge.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, Self

from pydantic import Field, model_validator

from muster.conditions import Condition, is_met
from muster.model import Action, Data, Name, ServiceState, Severity
from muster_coordinator.quarantine.charge import Charge, Key, Proof
from muster_coordinator.quarantine.demand import Demand, Prospect

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
"""By the proof that a row wants, that of the charges which it matches, well founded or not yet."""

_PROVEN_BY = {**MATCHED_BY_PROOF, Proof.TWICE: frozenset({Proof.TWICE, Proof.LOCALISED})}

DAY_S = 86_400

MOST_REPEATS = 32
"""More sightings of the same finding than that no row counts."""

_ONLY_TO_TAKE_OUT = ("repeats", "within_s", "after_s", "fresh_s", "action", "urgency")

_ACTIONS = tuple(Action)

_NEVER = float("inf")

Sightings = Mapping[Key, Sequence[float]]
"""By charge, when runs have found it, the earliest first; the last MOST_REPEATS of them are enough."""


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
        "CORDONED", description="IN_SERVICE: takes no node out, whatever the rows behind it say"
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

    def matches(self, charge: Charge) -> bool:
        """Whether it decides about the charge, unless a row before it does."""
        return (
            charge.severity in MATCHED_BY_SEVERITY[self.severity]
            and charge.proof in MATCHED_BY_PROOF[self.proof]
            and self.names(charge.check, charge.code)
            and all(is_met(condition, charge.evidence.get(name)) for name, condition in self.when.items())
        )


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a row makes of a charge: between which times it asks for the node, and until when that is proven."""

    row: Row
    charge: Charge
    begins_at: float
    ends_at: float
    lapses_at: float

    def asks(self, now: float) -> bool:
        return self.begins_at <= now < self.ends_at

    def is_proven(self, now: float) -> bool:
        return self.charge.proof in _PROVEN_BY[self.row.proof] and now < self.lapses_at

    def changes_at(self, now: float) -> float | None:
        """When time alone changes what it asks for."""
        if self.ends_at <= max(now, self.begins_at):
            return None
        if now < self.begins_at:
            return self.begins_at
        change = min(self.ends_at, self.lapses_at) if self.is_proven(now) else self.ends_at
        return change if change < _NEVER else None

    @property
    def action(self) -> Action:
        return self.charge.action if self.row.action is None else self.row.action

    @property
    def rank(self) -> tuple[int, str, str, str, int]:
        """What claims are ordered by, the one that weighs most first."""
        device = -1 if self.charge.device is None else self.charge.device
        return -self.row.urgency, self.charge.cause, self.row.name, self.charge.check, device


@dataclass(frozen=True, slots=True)
class Policy:
    """The rows, in the order in which they are asked: the operator's first, then those that come with muster."""

    rows: tuple[Row, ...]

    def deciding(self, charge: Charge) -> Row | None:
        """The row that decides about a charge; None when there is none, and nothing happens."""
        return next((row for row in self.rows if row.matches(charge)), None)

    def spared(self, charges: Iterable[Charge]) -> tuple[str, ...]:
        """What of these are errors that take no node out, however well founded, and why; the same only once."""
        errors = ((it.cause, self.deciding(it)) for it in charges if it.severity is Severity.ERROR)
        spared = ((cause, row) for cause, row in errors if row is None or not row.takes_out)
        return tuple(dict.fromkeys(f"{cause} takes no node out: {why_spared(row)}" for cause, row in spared))

    def demand(self, charges: Iterable[Charge], sightings: Sightings, now: float) -> Demand | None:
        """What the charges against one node ask for; None when it may stay in service.

        The row with the highest urgency counts, and of equal ones the first code. A demand that some charges prove is
        proven, whatever others ask for besides; what should be done is the most that those ask for which count.
        """
        asking = sorted((each for each in self._claims(charges, sightings) if each.asks(now)), key=lambda it: it.rank)
        if not asking:
            return None
        proven = [each for each in asking if each.is_proven(now)]
        counting = proven or asking
        return Demand(
            row=counting[0].row.name,
            codes=tuple(dict.fromkeys(each.charge.code for each in [*proven, *asking])),
            cause=counting[0].charge.cause,
            action=max((each.action for each in counting), key=_ACTIONS.index),
            urgency=counting[0].row.urgency,
            reason=counting[0].row.reason,
            unproven=() if proven else tuple(sorted({each.charge.check for each in asking})),
        )

    def prospect(self, charges: Iterable[Charge], sightings: Sightings, now: float) -> Prospect | None:
        """What will be asked for first when time passes and nothing else happens; None when nothing will be."""
        coming = (each for each in self._claims(charges, sightings) if now < each.begins_at < each.ends_at)
        first = min(coming, key=lambda it: (it.begins_at, it.rank), default=None)
        return None if first is None else Prospect(row=first.row.name, code=first.charge.code, at=first.begins_at)

    def next_look(self, charges: Iterable[Charge], sightings: Sightings, now: float) -> float | None:
        """When `demand` may say something else although nothing has happened; None when it never does."""
        changes = (each.changes_at(now) for each in self._claims(charges, sightings))
        return min((at for at in changes if at is not None), default=None)

    def _claims(self, charges: Iterable[Charge], sightings: Sightings) -> Iterator[_Claim]:
        """What the rows that take nodes out make of the charges, now or in time."""
        for charge in charges:
            row = self.deciding(charge)
            if row is not None and row.takes_out:
                yield _claim(row, charge, sightings.get(charge.key, ()))


def why_spared(row: Row | None) -> str:
    """Why what this row decides about takes no node out; None: no row does."""
    return "no row is about it" if row is None else f"row {row.name} keeps nodes in service"


def _claim(row: Row, charge: Charge, seen_at: Sequence[float]) -> _Claim:
    """A claim that ends as it begins where runs have not found the charge as often as the row wants."""
    begins_at, ends_at = charge.since + row.after_s, _NEVER
    if row.within_s is not None:
        ends_at = seen_at[-row.repeats] + row.within_s if len(seen_at) >= row.repeats else begins_at
    return _Claim(row=row, charge=charge, begins_at=begins_at, ends_at=ends_at, lapses_at=charge.seen + row.fresh_s)


@lru_cache(maxsize=16_384)  # there are few codes and rows, and a storm of findings asks the same again and again
def _is_any(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
