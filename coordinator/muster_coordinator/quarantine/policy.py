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

from muster.model import Action, Severity
from muster_coordinator.model.charge import Charge, Key, Proof
from muster_coordinator.model.demand import Demand, Prospect
from muster_coordinator.model.policy_row import MATCHED_BY_PROOF, Row

_PROVEN_BY = {**MATCHED_BY_PROOF, Proof.TWICE: frozenset({Proof.TWICE, Proof.LOCALISED})}


_ACTIONS = tuple(Action)

_NEVER = float("inf")

Sightings = Mapping[Key, Sequence[float]]
"""By charge, when runs have found it, the earliest first; the last MOST_REPEATS of them are enough."""


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
