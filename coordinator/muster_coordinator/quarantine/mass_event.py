"""Many nodes, one cause, a short time: rather a broken driver roll-out or a broken check than that many bad nodes.

While there is such an event, no node is taken out. It is over when fewer nodes have the trouble than it takes to call
it one, or when a person says so; then the same cause counts no more until it has been over.
"""

from collections import defaultdict
from collections.abc import Iterable
from operator import itemgetter

from muster.quarantine_settings import MassEventSettings
from muster_coordinator.model.quarantine_events import MassEvent
from muster_coordinator.quarantine.budget import share_of


class MassEvents:
    """Which nodes have which trouble, and what of that is a mass event."""

    def __init__(self, settings: MassEventSettings) -> None:
        self.standing: dict[str, MassEvent] = {}
        self._settings = settings
        self._since: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._lifted: set[str] = set()

    def note(self, node: str, cause: str, since: float, members: int, now: float) -> MassEvent | None:
        """Notes what a node is accused of; the event that this has made, if it has."""
        self._since[cause][node] = since
        if cause in self._lifted:
            return None
        known = self.standing.get(cause)
        if known is None and not self._are_too_many(cause, members, now):
            return None
        event = self._stand(cause, known.since if known else now)
        return None if known else event

    def forget(self, node: str, cause: str, members: int) -> MassEvent | None:
        """Notes that a node has this trouble no more; the event that is over with this, if one is."""
        self._since[cause].pop(node, None)
        if self._is_shared(cause, members):
            if cause in self.standing:
                self._stand(cause, self.standing[cause].since)
            return None
        if not self._since[cause]:
            del self._since[cause]
        self._lifted.discard(cause)
        return self.standing.pop(cause, None)

    def nodes_with(self, cause: str) -> tuple[str, ...]:
        """The nodes that have this trouble, in the order in which it was noted."""
        return tuple(self._since.get(cause, ()))

    def restore(
        self, accused: Iterable[tuple[str, str, float]], let_pass: Iterable[str], frozen: Iterable[str], members: int
    ) -> None:
        """Takes over which node has which cause since when, which a person has let pass, and which are mass events.

        Those are over only when few have them, whenever those that have them by now got them.
        """
        self._lifted = set(let_pass)
        for node, cause, since in sorted(accused, key=itemgetter(2, 0)):
            self.note(node, cause, since, members, since)
        self._lifted -= {cause for cause in self._lifted if not self._is_shared(cause, members)}
        for cause in sorted(set(frozen) - self.standing.keys() - self._lifted):
            if self._is_shared(cause, members):
                self._stand(cause, min(self._since[cause].values()))

    def go_on(
        self, accused: Iterable[tuple[str, str, float]], standing: Iterable[MassEvent], lifted: Iterable[str]
    ) -> None:
        """Takes over which node has which cause since when, and what of that is a mass event or was lifted."""
        for node, cause, since in sorted(accused, key=itemgetter(2, 0)):
            self._since[cause][node] = since
        self.standing = {event.cause: event for event in standing}
        self._lifted = set(lifted)

    def is_lifted(self, cause: str) -> bool:
        """Whether a person has let this cause pass."""
        return cause in self._lifted

    @property
    def lifted(self) -> tuple[str, ...]:
        """The causes that a person has let pass, by name."""
        return tuple(sorted(self._lifted))

    def lift(self) -> tuple[MassEvent, ...]:
        """Lets nodes be taken out again, whatever many of them have; the events that are over with this."""
        lifted = tuple(self.standing.values())
        self._lifted |= self.standing.keys()
        self.standing.clear()
        return lifted

    def refusal(self) -> str | None:
        """Why no node may be taken out; None when nothing speaks against it."""
        for event in self.standing.values():
            return f"too many nodes have {event.cause} for it to be their own fault"
        return None

    def _stand(self, cause: str, since: float) -> MassEvent:
        self.standing[cause] = MassEvent(cause=cause, nodes=len(self._since[cause]), since=since)
        return self.standing[cause]

    def _is_shared(self, cause: str, members: int) -> bool:
        """Whether so many have it as make a mass event, when they get it in a short time."""
        return len(self._since[cause]) >= self._threshold(members)

    def _are_too_many(self, cause: str, members: int, now: float) -> bool:
        lately = sum(now - begun <= self._settings.window_s for begun in self._since[cause].values())
        return lately >= self._threshold(members)

    def _threshold(self, members: int) -> int:
        return max(self._settings.nodes, share_of(self._settings.share, members))
