"""Why a sweep came to its judgement about one node, as the API serves it."""

from enum import StrEnum

from muster.model import Data, Verdict


class SweepStanding(StrEnum):
    """What a sweep says of a node. BEHIND a leaf that is at fault nothing can be told; OPEN it is until the end."""

    CONVICTED = "convicted"
    CLEARED = "cleared"
    BEHIND = "behind"
    INCONCLUSIVE = "inconclusive"
    OPEN = "open"


class ExplainedGroup(Data):
    """A group that the node was in, with the `others`, and in plain words (`told`) what matters of it to the node.

    `objective` is what the group reached, `typical` what groups of this sweep do that go well, in the same unit.
    """

    id: str
    others: tuple[str, ...]
    first_rank: int | None
    verdict: Verdict | None
    objective: float | None
    typical: float | None
    told: tuple[str, ...]


class ExplainedRound(Data):
    """The groups of the node in one round, none where it had to wait, and what was judged after it, of all nodes."""

    number: int
    groups: tuple[ExplainedGroup, ...]
    learned: tuple[str, ...]


class Explanation(Data):
    """What a sweep judged about a node, and round by round why.

    It tells what speaks `against` the node or what connects it, and what is `excluded` by what. `confidence` is between
    0 and 1, and only there for a node that is convicted. `notes` are those that are about the node.
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
