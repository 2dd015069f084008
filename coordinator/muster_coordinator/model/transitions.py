"""What came of a transition at each actor, and when a failed action is tried again."""

from muster.backoff import backoff_s
from muster.model import Data, Instant, Name
from muster.transition import ActionOutcome, Effect, Transition

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 300.0
"""Each time twice as long as the time before, so that a scheduler that is down is not worn down as well."""


class ActorOutcome(Data):
    """What came of the last of so many tries; `next_try` is when there will be another, None when there is no need.

    Until `not_before` the other side wants to be left alone. Since `failing_since` every try has failed. An actor that
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


class TransitionRecord(Data):
    """A transition as it is stored, with what came of it by actor; `told` says that every actor has had it once."""

    transition: Transition
    told: bool = False
    outcomes: dict[Name, ActorOutcome] = {}

    @property
    def next_try(self) -> float | None:
        """When somebody has to be told again."""
        return min((it.next_try for it in self.outcomes.values() if it.next_try is not None), default=None)

    def due(self, now: float) -> tuple[str, ...]:
        """The actors that are to be told again now."""
        return tuple(actor for actor, it in self.outcomes.items() if it.next_try is not None and it.next_try <= now)

    def may_try(self, actor: str, now: float) -> bool:
        """Whether an actor waits to be told again that could be told now."""
        outcome = self.outcomes.get(actor)
        return outcome is not None and outcome.next_try is not None and outcome.not_before <= now

    def trying(self, actors: tuple[str, ...]) -> "TransitionRecord":
        """The action while these actors are being told again."""
        known = ((actor, self.outcomes[actor]) for actor in actors if actor in self.outcomes)
        under_way = {actor: outcome.model_copy(update={"next_try": None}) for actor, outcome in known}
        return self.model_copy(update={"outcomes": {**self.outcomes, **under_way}})

    def without_retries(self) -> "TransitionRecord":
        """The action when nothing of it is tried again."""
        return self.trying(tuple(self.outcomes))

    def after(self, actor: str, outcome: ActionOutcome, now: float) -> "TransitionRecord":
        """The action with what came of it at one actor."""
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
