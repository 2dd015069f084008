"""The findings that can exist, so that a policy which names others is refused."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from muster.check import PLUGINS_LOADED, AnyCheck
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.normal.baselines import COMPARED

_OF_ANY_RUN = (
    "plugins.failed",
    "run.exited",
    "run.garbage",
    "run.hung",
    "run.killed",
    "run.leftovers",
    "run.lost",
    "run.not_idle",
    "run.not_judged",
    "run.out_of_memory",
    "run.oversized",
    "run.preempted",
    "run.raised",
    "run.refused",
    "run.skipped",
    "run.timeout",
    "run.unkillable",
)
"""The findings of agents about runs of any check."""

_OF_NO_CHECK = {"agent": tuple(Misconduct), "node": ("node.lost",), PLUGINS_LOADED: ("plugins.failed",)}
"""The findings without a check, by the word in place of the check's name."""


class KnownFinding(NamedTuple):
    """A finding that can exist, and the weakest proof that it can come with."""

    check: str
    code: str
    proof: Proof


def known_findings(checks: Mapping[str, AnyCheck]) -> frozenset[KnownFinding]:
    """All findings that can exist with these checks; a pattern for a check that does not list its codes."""
    found = {KnownFinding(check, code, Proof.ONCE) for check, codes in _OF_NO_CHECK.items() for code in codes}
    for check in checks.values():
        own = (*(check.finds or (f"{check.name}.*",)), *_OF_ANY_RUN)
        convicted = (f"{check.name}.slow", f"{check.name}.failed")
        found |= {KnownFinding(check.name, code, Proof.ONCE) for code in own}
        found |= {KnownFinding(check.name, code, Proof.LOCALISED) for code in convicted}
        found |= {KnownFinding(check.name, code, Proof.COMPARED) for code in COMPARED}
    return frozenset(found)


def with_named(known: frozenset[KnownFinding], patterns: Iterable[str]) -> frozenset[KnownFinding]:
    """`known`, and the findings of `patterns` that a check without listed codes may find."""
    open_ended = [each for each in known if "*" in each.code]
    return known | {
        each._replace(code=pattern) for pattern in patterns for each in open_ended if fnmatchcase(pattern, each.code)
    }
