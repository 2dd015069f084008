"""What the policy asks for because of what stands against a node."""

from muster.model import Action, Data, Instant, Name, format_instant


class Demand(Data):
    """That a node should go out of service, by the row of the policy that weighs most.

    `codes` are the findings that ask for it, the worst first; `cause` is what the first of them has in common with
    those of other nodes, by which nodes are counted that have the same trouble. `unproven` are the checks that must
    find it once more before anything is done; when it is empty, the demand is proven. Of two demands, the one with the
    higher `urgency` (0 to 100) goes first.
    """

    row: Name
    codes: tuple[str, ...]
    cause: str
    action: Action
    urgency: int
    reason: str
    unproven: tuple[Name, ...] = ()

    @property
    def is_proven(self) -> bool:
        return not self.unproven


class Prospect(Data):
    """That a row of the policy will ask for a node from `at` on, if `code` still stands against it then."""

    row: Name
    code: str
    at: Instant

    @property
    def told(self) -> str:
        """The same in words."""
        return f"row {self.row} asks for it from {format_instant(self.at)} on, unless {self.code} is over before"
