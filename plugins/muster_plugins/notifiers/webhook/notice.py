"""What a target is told, before it takes the form that the target understands."""

from dataclasses import dataclass

from muster import Transition, cause_text
from muster.model import ServiceState

_IS = {
    ServiceState.ACCEPTING: "is new and not accepted yet",
    ServiceState.IN_SERVICE: "is in service",
    ServiceState.HELD: "should be drained, but cannot be now",
    ServiceState.CORDONED: "drained",
    ServiceState.PROBATION: "is being retested",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A transition of a node of the fleet; `link` is where its story can be read."""

    fleet: str
    transition: Transition
    link: str | None = None

    @property
    def key(self) -> str:
        """Tells it from all others, also from those of another fleet, or from before the database was begun anew."""
        return f"{self.fleet}:{self.transition.id}:{round(self.transition.at * 1000)}"

    @property
    def headline(self) -> str:
        """The transition in one line, cause first: `n017 drained: XID 79 GPU 3: GPU has fallen off the bus`."""
        return f"{self.transition.node} {_IS[self.transition.after]}: {cause_text(self.transition)}"

    @property
    def is_over(self) -> bool:
        """Whether nobody has to look after the node any more."""
        return self.transition.after is ServiceState.IN_SERVICE


def cut(text: str, most: int) -> str:
    """The text, with an ellipsis for what is beyond `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
