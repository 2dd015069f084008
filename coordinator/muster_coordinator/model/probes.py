"""What a sweep asks of a group of nodes (a probe), and what the group showed (a group run)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Site:
    """Where a node stands, and what it is; None where nobody has declared it.

    Nodes of one leaf share its switch. Nodes of one rack share a leaf. Kinds of hardware may differ in speed. Only
    nodes with the same number of `devices` have rails between them. `places_itself` says that only the node itself
    declares its leaf.
    """

    node: str
    rack: str | None = None
    leaf: str | None = None
    hardware_kind: str | None = None
    devices: int = 0
    places_itself: bool = False


@dataclass(frozen=True, slots=True)
class CheckAbilities:
    """What the check can measure: something worth comparing on a node alone, and the bandwidth of each rail."""

    alone: bool = True
    by_rail: bool = True


@dataclass(frozen=True, slots=True)
class Probe:
    """A group to run, and the reason. With `by_rail`, its ranks exchange on each rail separately, one after another."""

    members: tuple[str, ...]
    reason: str
    by_rail: bool = False


class RunOutcome(StrEnum):
    """What a group run showed by itself, before it is compared with other runs."""

    GOOD = "GOOD"
    BAD = "BAD"
    VOID = "VOID"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRun:
    """What one run of one group showed.

    `crashed` are the members whose own ranks crashed, if not all did; the cause may be what others sent. `hard` says
    that ranks crashed or that a verdict was FAIL. `detail` says for people why the run was bad. If the rails ran
    separately, `rails` has the bandwidth of each rail, comparable only with the other rails of this run. `on_one_host`
    says that members share a host, and so its cores and memory bandwidth. `is_judged` says that each member has a
    reference for the objective. `beside` is the number of other groups of the sweep, of several nodes each, that ran at
    the same time. `round` is its round in the sweep.

    The other fields are by node and hold only what was measured. `sent`: what the node sent while no other node sent,
    in GB/s, in groups of two only. `latest`: the share of rounds in which one of its ranks came last, from 0 to 1.
    `work_s`: the seconds that its slowest rank computed before it took part.
    """

    group: str
    members: tuple[str, ...]
    outcome: RunOutcome
    objective: float | None = None
    rails: tuple[float, ...] = ()
    crashed: frozenset[str] = frozenset()
    hard: bool = False
    detail: str = ""
    on_one_host: bool = False
    is_judged: bool = False
    beside: int = 0
    round: int = 0
    sent: Mapping[str, float] = field(default_factory=dict)
    latest: Mapping[str, float] = field(default_factory=dict)
    work_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_pass(self) -> bool:
        """Whether the run, if it is not slow, shows that its members are healthy.

        A single rank without a partner measures 0, which shows nothing.
        """
        return self.outcome is RunOutcome.GOOD and self.objective != 0

    def others(self, node: str) -> tuple[str, ...]:
        """The members besides `node`."""
        return tuple(member for member in self.members if member != node)
