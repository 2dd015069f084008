"""The facts about one member of a group, and the members to blame when a group could not go on.

A fault prevents one member from doing its part. The ranks of the others wait for it and fail in turn, so only the
members with the gravest kind of fault are blamed. From the gravest to the least:

1. The member contradicts itself: it reports more ranks than it has, or results of ranks that are not its own.
2. The member vanished.
3. A rank of the member crashed.
4. The member declined.
5. The member cannot reach rank 0.
6. The member only saw its peers fail, or sent nothing more.
"""

import ipaddress
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from muster.check import Scope
from muster.model import LARGEST_NUMBER, Finding, RankResult, Severity, Verdict, worst
from muster.nccl_tests_table import results_in
from muster.wire.messages import Accepted
from muster_coordinator.model.finding_size import first_within
from muster_coordinator.model.sweep_records import Blame, Ending, GroupState, MemberRecord

LOST = "lost"
SILENT = "silent"
UNREACHABLE = "unreachable"
DECLINED_OTHERWISE = "declined"
TOO_MANY_RANKS = "too_many_ranks"
WRONG_RESULTS = "wrong_results"

CONTRADICTIONS = frozenset({TOO_MANY_RANKS, WRONG_RESULTS})
"""The member contradicts what it has reported before. No other node can cause that."""

CRASHED = frozenset({"run.killed", "run.exited", "run.out_of_memory"})
"""Findings of a member whose own rank was ended; its peers report run.raised or run.timeout."""

PREVENTED = frozenset({"run.skipped", "run.preempted", "run.not_idle", "run.refused"})
"""Findings of a member that had nothing to measure or had to yield to work: no evidence of anything."""

DECLINED = PREVENTED | {
    "busy",
    "unknown_check",
    "bad_params",
    "too_few_devices",
    "not_idle",
    "preempted",
    "expired",
    "stopping",
    "failed_to_start",
    DECLINED_OTHERWISE,
}

WRONG_CLOCK_S = 5.0
"""Longer than a message takes, and more than synchronised clocks differ."""

LONGEST_DOUBT_S = 5.0
"""As long as a last will takes to be believed (`evidence.heartbeats`). No member can hold up its group for longer."""

MOST_FIGURES = 10_000
"""Maximum number of values from all ranks of a member together: some hundred from each of sixteen ranks. Every group is
kept as long as its sweep.
"""

MOST_FINDINGS, MOST_FINDINGS_BYTES = 256, 64 << 10
"""Maximum number of findings that are kept of all ranks of a member together."""

GRAVEST_FIRST = (CONTRADICTIONS, frozenset({LOST}), CRASHED, DECLINED, frozenset({UNREACHABLE}))
"""Other reasons come last: ranks may have failed only because a silent peer failed."""


def gravest(faults: Iterable[Blame]) -> tuple[Blame, ...]:
    """The faults of the gravest kind that occurs."""
    rest = tuple(faults)
    for kind in GRAVEST_FIRST:
        if chosen := tuple(fault for fault in rest if fault.reason in kind):
            return chosen
    return rest


def may_be_echo(reason: str) -> bool:
    """Whether ranks also end with this reason when only the ranks of a peer have failed."""
    return reason.startswith("run.") and reason not in CRASHED | PREVENTED


def is_figure(value: object) -> TypeGuard[float]:
    """Whether the value is a number that a check can have measured: from 0 to LARGEST_NUMBER."""
    return isinstance(value, float) and 0 <= value <= LARGEST_NUMBER


@dataclass(slots=True)
class GroupMember:
    """What one member has reported so far, and its fault if it has one."""

    node: str
    accepted: Accepted | None = None
    first_rank: int | None = None
    ready: bool = False
    results: tuple[RankResult, ...] | None = None
    findings: tuple[Finding, ...] = ()
    fault: Blame | None = None
    declined: bool = False
    clock_ahead_s: float | None = None
    doubted_until: float = -math.inf

    @property
    def address(self) -> str | None:
        """The address that the member reports for itself; None until it has accepted."""
        return None if self.accepted is None else self.accepted.address

    @property
    def ranks(self) -> int:
        """The number of ranks that it accepted with; 0 until it has accepted."""
        return 0 if self.accepted is None else self.accepted.ranks

    @property
    def verdict(self) -> Verdict | None:
        """None until it has reported."""
        return None if self.results is None else worst([rank.verdict for rank in self.results])

    @property
    def released(self) -> bool:
        """Whether the member has reported that it no longer holds anything for the group."""
        return self.results is not None or self.declined

    def is_doubted(self, now: float, deadline: float) -> bool:
        """Whether it may have vanished without a result, which will be known soon after the `deadline` of its group."""
        return self.results is None and now < min(self.doubted_until, deadline + LONGEST_DOUBT_S)

    def has_answered(self, state: GroupState) -> bool:
        """Whether the member has reported what a group in `state` waits for."""
        match state:
            case GroupState.FORMING:
                return self.accepted is not None
            case GroupState.ELECTED:
                return self.ready
        return self.results is not None

    def least(self, metric: str) -> float | None:
        """The least value of `metric` over its ranks and their devices; None when it reported none."""
        reported = [rank.metrics.get(metric) for rank in self.results or ()]
        flat = [value for item in reported for value in (item if isinstance(item, list) else [item])]
        return min((value for value in flat if is_figure(value)), default=None)

    def place(self) -> MemberRecord:
        return MemberRecord(
            node=self.node,
            address=self.address,
            first_rank=self.first_rank,
            ranks=None if self.accepted is None else self.accepted.ranks,
            verdict=self.verdict,
            findings=self.findings,
            measured=tuple(rank.metrics for rank in self.results or ()),
            by_size=next(filter(None, (results_in(rank.facts) for rank in self.results or ())), ()),
            clock_ahead_s=self.clock_ahead_s,
        )

    def note_clock(self, said_at: float, now: float) -> None:
        """Compares the time `said_at` of a message, by the member's clock, with the coordinator's clock."""
        if abs(said_at - now) > WRONG_CLOCK_S:
            self.clock_ahead_s = round(said_at - now, 1)

    def decline(self, reason: str, detail: str) -> None:
        """Notes that the member does not take part, or no longer does."""
        self.declined = True
        self.fault = Blame(node=self.node, reason=reason, detail=detail)

    def finish(self, results: tuple[RankResult, ...], scope: Scope) -> None:
        """Notes the results of its ranks. Ranks that ended without a measurement are a fault.

        Results of other ranks than its own are a fault, too, and do not count: they would count as another member's.
        """
        own, reported, figures = self._ranks(scope), [result.rank for result in results], _figures(results)
        if reported != own:
            self._contradict(f"it reported {_in_words(reported)}; its ranks are {_in_words(own)}")
            return
        if figures > MOST_FIGURES:
            self._contradict(f"it reported {figures} numbers; at most {MOST_FIGURES} are taken")
            return
        self.results = results
        found = (finding for rank in results for finding in rank.findings)
        self.findings = first_within(found, MOST_FINDINGS, MOST_FINDINGS_BYTES)
        if self.verdict in (Verdict.UNKNOWN, Verdict.SKIPPED):
            self.fault = self._fault_of_ranks()

    def _contradict(self, detail: str) -> None:
        self.results = ()
        self.fault = Blame(node=self.node, reason=WRONG_RESULTS, detail=detail)

    def _ranks(self, scope: Scope) -> list[int]:
        """The numbers of its ranks. A check of scope NODE has only rank 0, however many devices the node has."""
        if scope is Scope.NODE or self.accepted is None or self.first_rank is None:
            return [0]
        return [*range(self.first_rank, self.first_rank + self.accepted.ranks)]

    def _fault_of_ranks(self) -> Blame:
        kinds = (Severity.UNKNOWN, Severity.SKIPPED)
        blames = [Blame(node=self.node, reason=f.code, detail=f.summary) for f in self.findings if f.severity in kinds]
        return gravest(blames)[0] if blames else Blame(node=self.node, reason="run.no_result")


def _figures(results: Iterable[RankResult]) -> int:
    """The number of values that ranks report."""
    values = (value for result in results for value in result.metrics.values())
    return sum(len(value) if isinstance(value, list) else 1 for value in values)


def _in_words(ranks: Sequence[int]) -> str:
    """The number of ranks, and the first and last one."""
    return f"{len(ranks)} ranks from {min(ranks)} to {max(ranks)}" if ranks else "no ranks"


def verdict_of(members: Iterable[Verdict | None], ending: Ending | None) -> Verdict | None:
    """The worst verdict of the members of a group; None until the group has ended.

    At best UNKNOWN when not all members could measure.
    """
    if ending is None:
        return None
    said = [verdict for verdict in members if verdict is not None]
    not_all_could = ending is not Ending.FINISHED or len({verdict is Verdict.SKIPPED for verdict in said}) > 1
    return worst([*said, Verdict.UNKNOWN] if not_all_could else said)


def is_own_host(address: str | None) -> bool:
    """Whether every host reaches itself at this address: 127.0.0.1, ::1, 0.0.0.0, localhost or none."""
    if not address or address.lower() == "localhost":
        return True
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return parsed.is_loopback or parsed.is_unspecified
