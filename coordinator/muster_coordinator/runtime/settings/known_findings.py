"""Which findings there can be, so that a policy which names others is refused."""

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
"""What agents find about runs of any check."""

_OF_NO_CHECK = {"agent": tuple(Misconduct), "node": ("node.lost",), PLUGINS_LOADED: ("plugins.failed",)}
"""What is found without a check, by what stands in the place of its name."""


class Known(NamedTuple):
    """A finding that there can be, and the least proof that it can come with."""

    check: str
    code: str
    proof: Proof


def known_findings(checks: Mapping[str, AnyCheck]) -> frozenset[Known]:
    """All that there can be where these are all checks; the code of a check that tells none of its own is a pattern."""
    found = {Known(check, code, Proof.ONCE) for check, codes in _OF_NO_CHECK.items() for code in codes}
    for check in checks.values():
        own = (*(check.finds or (f"{check.name}.*",)), *_OF_ANY_RUN)
        convicted = (f"{check.name}.slow", f"{check.name}.failed")
        found |= {Known(check.name, code, Proof.ONCE) for code in own}
        found |= {Known(check.name, code, Proof.LOCALISED) for code in convicted}
        found |= {Known(check.name, code, Proof.COMPARED) for code in COMPARED}
    return frozenset(found)


def with_named(known: frozenset[Known], patterns: Iterable[str]) -> frozenset[Known]:
    """`known` and those of `patterns` that a check may find which does not tell its codes."""
    open_ended = [each for each in known if "*" in each.code]
    return known | {
        each._replace(code=pattern) for pattern in patterns for each in open_ended if fnmatchcase(pattern, each.code)
    }
