"""What a target's answer means for the transition that it was told, and what those of several targets mean together."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from muster import ActionOutcome, Effect

TOLD = ActionOutcome(effect=Effect.DONE, detail="told")

_LATER = frozenset({408, 425, 429})
"""Of the answers that refuse, those that a later post may not get: timeout, too early, too many."""

_LONGEST_WAIT_S = 3600.0


def judge_answer(status: int, retry_after: str | None, said: str, now: float) -> ActionOutcome:
    """What an answer means that begins with `said`, and whose header Retry-After holds `retry_after`."""
    if status < 300:
        return TOLD
    if status in _LATER or status >= 500:
        wait_s = None if retry_after is None else _seconds(retry_after, now)
        return ActionOutcome(effect=Effect.FAILED, detail=_text(status, said), retry_after_s=wait_s)
    if status < 400:
        said = "redirects are not followed; set url to where it leads"
    return ActionOutcome(effect=Effect.LEFT, detail=f"refused: {_text(status, said)}")


def combine(outcomes: Mapping[str, ActionOutcome]) -> ActionOutcome:
    """One outcome for those of all targets, by name: FAILED while one is to be told again, else LEFT if one refused."""
    effects = {outcome.effect for outcome in outcomes.values()}
    waits_s = [outcome.retry_after_s for outcome in outcomes.values() if outcome.retry_after_s is not None]
    return ActionOutcome(
        effect=next(effect for effect in (Effect.FAILED, Effect.LEFT, Effect.DONE) if effect in effects),
        detail="; ".join(f"{name}: {outcome.detail}" for name, outcome in outcomes.items()),
        retry_after_s=max(waits_s, default=None),
    )


def _text(status: int, said: str) -> str:
    return f"HTTP {status}: {said}" if said else f"HTTP {status}"


def _seconds(retry_after: str, now: float) -> float | None:
    """Retry-After holds seconds or a date; None when it holds neither."""
    if re.fullmatch(r"[0-9]{1,9}", retry_after):
        wait_s = float(retry_after)
    else:
        try:
            wait_s = parsedate_to_datetime(retry_after).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return min(max(wait_s, 0.0), _LONGEST_WAIT_S)
