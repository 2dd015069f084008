"""Decides which commands of the coordinator the agent obeys.

The idea: MQTT may deliver a command twice, late, or from a coordinator that no longer leads. Obeying such a command
would run a check twice or start a group that has been given up. Therefore the agent refuses a command

- if its id is among the last `REMEMBERED` ids,
- if its epoch is older than the newest epoch seen, because then another coordinator leads,
- if it has expired.

`expires_at` is on the coordinator's clock, and the two clocks may differ by hours. `PeerClock` measures the difference.
Example: three messages arrive 100.2 s, 100.1 s and 103.0 s after the time that the coordinator wrote on them. No
message travels faster than in 0 s, so the coordinator's clock is at most 100.1 s behind, and 100.1 s is the best
estimate: the 3 s came from a slow delivery. A command that expires at 12:00:00 there expires at 12:01:40.1 here.
"""

from collections import deque

from muster.wire.messages import AnyCommand
from muster_agent.decide.events import CountRefusal

REMEMBERED = 256
"""Command ids that are kept to recognise a second delivery."""

REMEMBERED_LAGS = 32
"""Number of messages for the difference of the clocks: after a correction, this many adjust the estimate."""


class PeerClock:
    """The estimated difference between a peer's clock and ours, in seconds."""

    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=REMEMBERED_LAGS)

    def heard(self, sent_at: float, now: float) -> None:
        """Notes a message: the peer's clock said `sent_at` when it was sent, ours said `now` when it arrived."""
        self._lags.append(now - sent_at)

    def here(self, instant: float) -> float:
        """Converts a time on the peer's clock to a time on ours."""
        return instant + min(self._lags, default=0.0)


class CommandAdmission:
    """The agent's memory of the coordinator: recent ids, its clock, and in `epoch` the newest epoch seen."""

    def __init__(self) -> None:
        self.epoch = 0
        self._clock = PeerClock()
        self._seen: deque[str] = deque(maxlen=REMEMBERED)

    def heard(self, sent_at: float, epoch: int, now: float) -> None:
        """Notes a message of a coordinator. Each new leader has a clock of its own."""
        if epoch > self.epoch:
            self.epoch, self._clock = epoch, PeerClock()
        if epoch == self.epoch:
            self._clock.heard(sent_at, now)

    def refusal(self, command: AnyCommand, now: float) -> CountRefusal | None:
        """Why the agent must not obey `command`; None if it obeys."""
        self.heard(command.sent_at, command.epoch, now)
        if command.id in self._seen:
            return CountRefusal("duplicate", f"{command.kind} {command.id} arrived a second time")
        self._seen.append(command.id)
        if command.epoch < self.epoch:
            return CountRefusal("old_epoch", f"{command.kind} has epoch {command.epoch}, the leader's is {self.epoch}")
        late_s = now - self._clock.here(command.expires_at)
        if late_s > 0:
            return CountRefusal("expired", f"{command.kind} arrived {late_s:.1f} s after it had expired")
        return None
