"""The outcome of a transition at each actor, and when a failed action is retried."""

from muster.backoff import backoff_s
from muster.model import Data, Instant, Name
from muster.transition import ActionOutcome, Effect, Transition

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 300.0
"""Each wait is twice the last one, to spare a scheduler that is down."""


class ActorOutcome(Data):
    """The outcome of the last of `tries` calls; `next_try` is when the next one follows, None if none does.

    The other side wants no call before `not_before`. Since `failing_since` every call has failed. An actor that
    `only_tells` cannot drain.
    """

    effect: Effect
    detail: str
    at: Instant
    tries: int
    next_try: Instant | None = None
    not_before: Instant = 0.0
    failing_since: Instant | None = None
    only_tells: bool = False

    @property
    def is_scheduler_failure(self) -> bool:
        """Whether an actor has failed that can drain and resume nodes."""
        return self.effect is Effect.FAILED and not self.only_tells


class TransitionRecord(Data):
    """A transition as it is stored, with its outcome by actor; `told` says that every actor was called once."""

    transition: Transition
    told: bool = False
    outcomes: dict[Name, ActorOutcome] = {}

    @property
    def failed(self) -> tuple[str, ...]:
        """The actors that have failed to carry it out."""
        return tuple(actor for actor, outcome in self.outcomes.items() if outcome.effect is Effect.FAILED)

    @property
    def next_try(self) -> float | None:
        """When the next actor is retried."""
        retries = (outcome.next_try for outcome in self.outcomes.values())
        return min((moment for moment in retries if moment is not None), default=None)

    def due(self, now: float) -> tuple[str, ...]:
        """The actors whose retry is due."""
        retries = ((actor, outcome.next_try) for actor, outcome in self.outcomes.items())
        return tuple(actor for actor, moment in retries if moment is not None and moment <= now)

    def may_try(self, actor: str, now: float) -> bool:
        """Whether an actor waits for a retry that may happen now."""
        outcome = self.outcomes.get(actor)
        return outcome is not None and outcome.next_try is not None and outcome.not_before <= now

    def trying(self, actors: tuple[str, ...]) -> "TransitionRecord":
        """The record while these actors are called again."""
        known = ((actor, self.outcomes[actor]) for actor in actors if actor in self.outcomes)
        under_way = {actor: outcome.model_copy(update={"next_try": None}) for actor, outcome in known}
        return self.model_copy(update={"outcomes": {**self.outcomes, **under_way}})

    def without_retries(self) -> "TransitionRecord":
        """The record when nothing of it is retried."""
        return self.trying(tuple(self.outcomes))

    def after(self, actor: str, outcome: ActionOutcome, now: float) -> "TransitionRecord":
        """The record with the outcome at one actor."""
        before = self.outcomes.get(actor)
        tries = 1 if before is None else before.tries + 1
        not_before = now + (outcome.retry_after_s or 0.0)
        retry_at = max(now + backoff_s(tries, FIRST_RETRY_S, LONGEST_RETRY_S), not_before)
        has_failed = outcome.effect is Effect.FAILED
        failing_since = None if before is None else before.failing_since
        known = ActorOutcome(
            effect=outcome.effect,
            detail=outcome.detail,
            at=now,
            tries=tries,
            next_try=retry_at if has_failed else None,
            not_before=not_before,
            failing_since=(failing_since or now) if has_failed else None,
            only_tells=outcome.only_tells,
        )
        return self.model_copy(update={"outcomes": {**self.outcomes, actor: known}})
