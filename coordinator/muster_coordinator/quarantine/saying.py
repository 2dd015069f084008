"""What is to be done about an event, as it gathers while the event is taken in."""

from muster.model import Json
from muster_coordinator.model.quarantine_events import Alarm, Command, Note


class Saying:
    """Gathers commands; `epoch` makes the ids that it gives unique, of which `ids` were given so far.

    `mark` stands beside all that is decided, where that is only rehearsed.
    """

    def __init__(self, epoch: int, mark: str) -> None:
        self.ids = 0
        self.mark = mark
        self._epoch = epoch
        self._said: list[Command] = []

    def say(self, *commands: Command) -> None:
        self._said += commands

    def note(self, node: str, about: str, text: str, cause: str | None = None, data: Json | None = None) -> None:
        """Appends to a node's story."""
        self.say(Note(node=node, about=about, text=text, cause=cause, data=data or {}))

    def alarm(self, text: str) -> None:
        """Tells whoever watches over the fleet."""
        self.say(Alarm(text=f"{text}{self.mark}"))

    def new_id(self, kind: str) -> str:
        """An id for what is asked for; `kind` says to people what it is."""
        self.ids += 1
        return f"{kind}{self._epoch}-{self.ids}"

    def take(self) -> list[Command]:
        """What was said since this was asked last."""
        said, self._said = self._said, []
        return said
