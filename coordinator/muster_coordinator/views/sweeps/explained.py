"""The explanation of a sweep's conclusion about one node, as the API serves it."""

from enum import StrEnum

from muster.model import Data, Verdict


class SweepStanding(StrEnum):
    """The conclusion of a sweep about a node. BEHIND: its leaf is faulty and hides it. OPEN: the sweep still runs."""

    CONVICTED = "convicted"
    CLEARED = "cleared"
    BEHIND = "behind"
    INCONCLUSIVE = "inconclusive"
    OPEN = "open"


class ExplainedGroup(Data):
    """A group of the node with the `others`, and sentences about it (`told`).

    `objective` is the value of the group, `typical` the value of healthy groups of this sweep, in the same unit.
    """

    id: str
    others: tuple[str, ...]
    first_rank: int | None
    verdict: Verdict | None
    objective: float | None
    typical: float | None
    told: tuple[str, ...]


class ExplainedRound(Data):
    """The groups of the node in one round, if any, and what the round changed about the diagnosis of all nodes."""

    number: int
    groups: tuple[ExplainedGroup, ...]
    learned: tuple[str, ...]


class Explanation(Data):
    """The conclusion of a sweep about a node, and why, round by round.

    `against` is the evidence against the node or its connections. `excluded` are other explanations, each with the run
    that excludes it. `confidence` is between 0 and 1, only for a convicted node. `notes` are those about the node.
    """

    sweep: str
    check: str
    node: str
    standing: SweepStanding
    confidence: float | None = None
    conclusion: str
    against: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    rounds: tuple[ExplainedRound, ...] = ()
    notes: tuple[str, ...] = ()
