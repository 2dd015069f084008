"""The outcome of a post by the target's answer, and the common outcome of several targets."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from muster import ActionOutcome, Effect

NOTIFIED = ActionOutcome(effect=Effect.DONE, detail="notified")

_LATER = frozenset({408, 425, 429})
"""Statuses after which a later post may succeed: timeout, too early, too many requests."""

_REFUSED_WAIT_S = 900.0
"""Refused notices are sent again after this time, in case a token, a channel or a rule has changed."""

_LONGEST_WAIT_S = 3600.0


def judge_answer(status: int, retry_after: str | None, said: str, now: float) -> ActionOutcome:
    """The outcome of an answer that begins with `said` and has the header Retry-After `retry_after`."""
    if status < 300:
        return NOTIFIED
    wait_s = None if retry_after is None else _seconds(retry_after, now)
    if status in _LATER or status >= 500:
        return ActionOutcome(effect=Effect.FAILED, detail=_text(status, said), retry_after_s=wait_s)
    if status < 400:
        said = "redirects are not followed; set url to where it leads"
    refused = f"refused: {_text(status, said)}"
    return ActionOutcome(effect=Effect.FAILED, detail=refused, retry_after_s=max(wait_s or 0.0, _REFUSED_WAIT_S))


def combine(outcomes: Mapping[str, ActionOutcome]) -> ActionOutcome:
    """One outcome for all targets, by name: FAILED if one must be notified again, DONE if all are notified."""
    failed = [outcome for outcome in outcomes.values() if outcome.effect is Effect.FAILED]
    return ActionOutcome(
        effect=Effect.FAILED if failed else Effect.DONE,
        detail="; ".join(f"{name}: {outcome.detail}" for name, outcome in outcomes.items()),
        retry_after_s=min((outcome.retry_after_s or 0.0 for outcome in failed), default=None),
        only_tells=True,
    )


def _text(status: int, said: str) -> str:
    return f"HTTP {status}: {said}" if said else f"HTTP {status}"


def _seconds(retry_after: str, now: float) -> float | None:
    """The seconds to wait. Retry-After is a number of seconds or a date; None if it is neither."""
    if re.fullmatch(r"[0-9]{1,9}", retry_after):
        wait_s = float(retry_after)
    else:
        try:
            wait_s = parsedate_to_datetime(retry_after).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return min(max(wait_s, 0.0), _LONGEST_WAIT_S)
