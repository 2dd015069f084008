"""The notice for a target, before it is converted to the target's format."""

from dataclasses import dataclass
from hashlib import sha256

from muster import Alarm, Transition, cause_text
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
    """A transition of a node of the fleet; `link` leads to the node's page."""

    fleet: str
    transition: Transition
    link: str | None = None

    @property
    def key(self) -> str:
        """Unique for each notice, also over fleets and after a new database."""
        return f"{self.fleet}:{self.transition.id}:{round(self.transition.at * 1000)}"

    @property
    def headline(self) -> str:
        """The transition in one line, cause first: `n017 drained: XID 79 GPU3: GPU has fallen off the bus`."""
        return f"{self.transition.node} {_IS[self.transition.after]}: {cause_text(self.transition)}"

    @property
    def is_over(self) -> bool:
        """Whether the node needs no more attention."""
        return self.transition.after is ServiceState.IN_SERVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmNotice:
    """An alarm of the fleet that begins or is over; `link` leads to the standing alarms."""

    fleet: str
    alarm: Alarm
    link: str | None = None

    @property
    def key(self) -> str:
        """Unique for each alarm, and for its begin and its end. The subject is hashed to fit into a header."""
        alarm = self.alarm
        subject = sha256(alarm.subject.encode()).hexdigest()[:16]
        end = "end" if alarm.is_over else "begin"
        return f"{self.fleet}:{alarm.kind}:{subject}:{round(alarm.since * 1000)}:{end}"

    @property
    def headline(self) -> str:
        """The alarm in one line. The text says by itself when it is over."""
        return self.alarm.text

    @property
    def is_over(self) -> bool:
        return self.alarm.is_over


def cut(text: str, most: int) -> str:
    """The text, cut to `most` characters; an ellipsis shows the cut."""
    return text if len(text) <= most else text[: most - 1] + "…"
