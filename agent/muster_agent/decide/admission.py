"""Which orders of the coordinator are carried out: each once, none that has expired, none of an older epoch."""

from collections import deque

from muster.wire.messages import AnyCommand
from muster_agent.decide.events import Refuse
from muster_agent.decide.peer_clock import PeerClock

REMEMBERED = 256
"""QoS 1 may deliver an order twice; so many ids are kept to tell."""


class Admission:
    """What is remembered of the coordinator. `epoch` is the newest that was seen."""

    def __init__(self) -> None:
        self.epoch = 0
        self._clock = PeerClock()
        self._seen: deque[str] = deque(maxlen=REMEMBERED)

    def heard(self, sent_at: float, epoch: int, now: float) -> None:
        """The coordinator has said something."""
        self._clock.heard(sent_at, now)
        self.epoch = max(self.epoch, epoch)

    def refuse(self, command: AnyCommand, now: float) -> Refuse | None:
        """Why `command` is not carried out, if it is not."""
        self.heard(command.sent_at, command.epoch, now)
        if command.id in self._seen:
            return Refuse("duplicate", f"{command.kind} {command.id} came again")
        self._seen.append(command.id)
        if command.epoch < self.epoch:
            return Refuse("old_epoch", f"{command.kind} of epoch {command.epoch}, the present one is {self.epoch}")
        late_s = now - self._clock.here(command.expires_at)
        if late_s > 0:
            return Refuse("expired", f"{command.kind} came {late_s:.1f} s after it had expired")
        return None
