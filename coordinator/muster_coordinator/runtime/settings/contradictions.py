"""Finds rows of a policy that could never decide about any finding, and says why."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from pydantic import JsonValue

from muster.conditions import is_met
from muster.errors import unknown
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.policy_row import MATCHED_BY_PROOF, MATCHED_BY_SEVERITY, Row
from muster_coordinator.quarantine.policy import LOST
from muster_coordinator.runtime.settings.known_findings import KnownFinding

_USUAL_EVIDENCE = ("sxid", "xid")
"""The usual keys of evidence that distinguish findings with one code. Checks do not declare them, so more may exist."""


def pointless_rows(rows: Sequence[Row], known: frozenset[KnownFinding]) -> Iterator[str]:
    """The problems of rows that name impossible findings, or whose findings an earlier row takes."""
    for row, first in zip(rows, shadows(rows, known), strict=True):
        reach = _reach(row, known)
        problems = (
            _strangers(row, known) or _never_found(row, reach) or _never_proven(row, reach) or _never_asked(first)
        )
        yield from (f"row {row.name}: {problem}" for problem in problems)


def doubtful_rows(rows: Sequence[Row]) -> Iterator[str]:
    """Possible typing errors in rows: keys of `when` that are similar to a usual key of evidence."""
    for row in rows:
        for key in row.when:
            near = get_close_matches(key.lower(), _USUAL_EVIDENCE, n=1, cutoff=0.7)
            if near and key not in _USUAL_EVIDENCE:
                yield f"row {row.name}: {key!r} is not a usual key of evidence; did you mean {near[0]!r}?"


def shadows(rows: Sequence[Row], known: frozenset[KnownFinding]) -> list[Row | None]:
    """For each row the first row before it that takes all its findings; None if there is none."""
    reaches = [_reach(row, known) for row in rows]
    return [
        next((rows[first] for first in range(place) if _takes_all(rows[first], reaches[first], row, reach)), None)
        for place, (row, reach) in enumerate(zip(rows, reaches, strict=True))
    ]


def _reach(row: Row, known: frozenset[KnownFinding]) -> frozenset[KnownFinding]:
    """The known findings that a row can decide about."""
    proofs = MATCHED_BY_PROOF[row.proof]
    return frozenset(each for each in known if each.proof in proofs and row.names(each.check, each.code))


def _strangers(row: Row, known: frozenset[KnownFinding]) -> list[str]:
    codes, checks = {each.code for each in known}, {each.check for each in known}
    return [
        unknown(what, pattern, names)
        for what, patterns, names in (("finding code", row.codes, codes), ("check", row.checks, checks))
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in names)
    ]


def _never_found(row: Row, reach: frozenset[KnownFinding]) -> list[str]:
    if reach:
        return []
    return [
        f"nothing with these codes is ever found by checks {', '.join(row.checks)} with proof {row.proof}: runs of a "
        "check find <check>.<what>, sweeps convict with <check>.slow and <check>.failed (LOCALISED), comparing "
        "finds baseline.<what> (COMPARED)"
    ]


def _never_proven(row: Row, reach: frozenset[KnownFinding]) -> list[str]:
    is_found_once = row.proof is Proof.ONCE and row.repeats == 1
    if is_found_once or not row.drains or any(each.code != LOST for each in reach):
        return []
    return [
        f"can never drain a node, because no run can find {LOST} again: set proof = 'ONCE' and leave repeats and "
        "within_s out; after_s says how long the node must have been silent"
    ]


def _never_asked(first: Row | None) -> list[str]:
    if first is None:
        return []
    return [f"can never decide, because row {first.name!r} before it takes all that it matches"]


def _takes_all(first: Row, its: frozenset[KnownFinding], row: Row, reach: frozenset[KnownFinding]) -> bool:
    """Whether `first`, which can decide about `its`, matches every finding that `row` matches."""
    return (
        bool(reach)
        and reach <= its
        and MATCHED_BY_SEVERITY[row.severity] <= MATCHED_BY_SEVERITY[first.severity]
        and all(name in row.when and _implies(row.when[name], wanted) for name, wanted in first.when.items())
    )


def _implies(condition: JsonValue, wanted: JsonValue) -> bool:
    """Whether every fact that meets `condition` meets `wanted`. Tables imply only equal tables."""
    if isinstance(condition, dict):
        return condition == wanted
    return all(is_met(wanted, value) for value in (condition if isinstance(condition, list) else [condition]))
