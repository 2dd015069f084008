"""Which rows of a policy could never decide about anything, and why."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from pydantic import JsonValue

from muster.conditions import is_met
from muster.errors import unknown
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.policy_row import MATCHED_BY_PROOF, MATCHED_BY_SEVERITY, Row
from muster_coordinator.quarantine.policy import LOST
from muster_coordinator.runtime.settings.known_findings import Known

_USUAL_EVIDENCE = ("sxid", "xid")
"""What policies tell findings of one code apart by. Checks do not declare their evidence, so there may be more."""


def pointless_rows(rows: Sequence[Row], known: frozenset[Known]) -> Iterator[str]:
    """What is wrong with rows that name what nobody finds, or of which an earlier one takes all."""
    for row, first in zip(rows, shadows(rows, known), strict=True):
        reach = _reach(row, known)
        problems = (
            _strangers(row, known) or _never_found(row, reach) or _never_proven(row, reach) or _never_asked(first)
        )
        yield from (f"row {row.name}: {problem}" for problem in problems)


def doubtful_rows(rows: Sequence[Row]) -> Iterator[str]:
    """What may be a slip of the pen in rows: keys of `when` that are almost as evidence is usually called."""
    for row in rows:
        for key in row.when:
            near = get_close_matches(key.lower(), _USUAL_EVIDENCE, n=1, cutoff=0.7)
            if near and key not in _USUAL_EVIDENCE:
                yield f"row {row.name}: does a check tell {key!r} in its evidence, or did you mean {near[0]!r}?"


def shadows(rows: Sequence[Row], known: frozenset[Known]) -> list[Row | None]:
    """For each row the first before it that takes all that it matches; None where there is none."""
    reaches = [_reach(row, known) for row in rows]
    return [
        next((rows[first] for first in range(place) if _takes_all(rows[first], reaches[first], row, reach)), None)
        for place, (row, reach) in enumerate(zip(rows, reaches, strict=True))
    ]


def _reach(row: Row, known: frozenset[Known]) -> frozenset[Known]:
    """The known findings that a row can decide about."""
    proofs = MATCHED_BY_PROOF[row.proof]
    return frozenset(each for each in known if each.proof in proofs and row.names(each.check, each.code))


def _strangers(row: Row, known: frozenset[Known]) -> list[str]:
    codes, checks = {each.code for each in known}, {each.check for each in known}
    return [
        unknown(what, pattern, names)
        for what, patterns, names in (("finding code", row.codes, codes), ("check", row.checks, checks))
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in names)
    ]


def _never_found(row: Row, reach: frozenset[Known]) -> list[str]:
    if reach:
        return []
    return [
        f"nothing with these codes is ever found by checks {', '.join(row.checks)} with proof {row.proof}: runs of a "
        "check find <check>.<what>, sweeps convict with <check>.slow and <check>.failed (LOCALISED), comparing finds "
        "baseline.<what> (COMPARED)"
    ]


def _never_proven(row: Row, reach: frozenset[Known]) -> list[str]:
    is_found_once = row.proof is Proof.ONCE and row.repeats == 1
    if is_found_once or not row.takes_out or any(each.code != LOST for each in reach):
        return []
    return [
        f"can never take a node out, because no run can find {LOST} again: set proof = 'ONCE' and leave repeats and "
        "within_s out; after_s says how long the node must have been silent"
    ]


def _never_asked(first: Row | None) -> list[str]:
    if first is None:
        return []
    return [f"can never decide, because row {first.name!r} before it takes all that it matches"]


def _takes_all(first: Row, its: frozenset[Known], row: Row, reach: frozenset[Known]) -> bool:
    """Whether whatever `row` matches is matched by `first`, which can decide about `its`."""
    return (
        bool(reach)
        and reach <= its
        and MATCHED_BY_SEVERITY[row.severity] <= MATCHED_BY_SEVERITY[first.severity]
        and all(name in row.when and _implies(row.when[name], wanted) for name, wanted in first.when.items())
    )


def _implies(condition: JsonValue, wanted: JsonValue) -> bool:
    """Whether every fact that meets `condition` meets `wanted`; of tables, only equal ones are known to."""
    if isinstance(condition, dict):
        return condition == wanted
    return all(is_met(wanted, value) for value in (condition if isinstance(condition, list) else [condition]))
