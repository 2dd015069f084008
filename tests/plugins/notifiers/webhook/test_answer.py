"""What the answers of targets mean."""

import pytest
from tests.cases import cases

from muster.transition import ActionOutcome, Effect
from muster_plugins.notifiers.webhook.answer import combine, judge_answer

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@cases(
    ("status", "effect", "detail", "wait_s"),
    [
        (200, "DONE", "notified", None),
        (202, "DONE", "notified", None),
        (204, "DONE", "notified", None),
        (301, "FAILED", "refused: HTTP 301: redirects are not followed; set url to where it leads", 900),
        (400, "FAILED", "refused: HTTP 400: why", 900),
        (401, "FAILED", "refused: HTTP 401: why", 900),
        (404, "FAILED", "refused: HTTP 404: why", 900),
        (408, "FAILED", "HTTP 408: why", None),
        (425, "FAILED", "HTTP 425: why", None),
        (429, "FAILED", "HTTP 429: why", None),
        (500, "FAILED", "HTTP 500: why", None),
        (503, "FAILED", "HTTP 503: why", None),
    ],
)
def test_status(status, effect, detail, wait_s):
    """Temporary refusals are retried soon, other refusals after the time that a person needs to fix the cause."""
    outcome = judge_answer(status, None, "why", NOW)
    assert (outcome.effect, outcome.detail, outcome.retry_after_s) == (effect, detail, wait_s)


@pytest.mark.parametrize(("retry_after", "wait_s"), [("5", 900), ("1200", 1200)])
def test_who_refuses_may_want_more_time(retry_after, wait_s):
    """The longer of the target's time and ours applies."""
    assert judge_answer(403, retry_after, "", NOW).retry_after_s == wait_s


def test_an_answer_without_a_word():
    """Only the status is available."""
    assert judge_answer(502, None, "", NOW).detail == "HTTP 502"


@cases(
    ("retry_after", "wait_s"),
    [
        ("0", 0),
        ("30", 30),
        ("999999", 3600),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60),
        ("Tue, 14 Nov 2023 22:12:20 GMT", 0),
        ("Thu, 14 Nov 9999 22:12:20 GMT", 3600),
        ("-5", None),
        ("soon", None),
        ("٣", None),
        ("9" * 400, None),
        ("", None),
    ],
)
def test_retry_after(retry_after, wait_s):
    """It is a number of seconds or a date, limited to an hour; anything else is ignored."""
    assert judge_answer(429, retry_after, "", NOW).retry_after_s == wait_s


def outcome(effect: str, wait_s: float | None = None) -> ActionOutcome:
    return ActionOutcome(effect=Effect(effect), detail=effect.lower(), retry_after_s=wait_s)


@pytest.mark.parametrize(
    ("outcomes", "effect", "wait_s"),
    [
        ([outcome("DONE")], "DONE", None),
        ([outcome("DONE"), outcome("DONE")], "DONE", None),
        ([outcome("FAILED", 60), outcome("DONE"), outcome("FAILED", 5)], "FAILED", 5),
        ([outcome("FAILED", 5), outcome("FAILED"), outcome("FAILED", 60)], "FAILED", 0),
    ],
)
def test_targets_together(outcomes, effect, wait_s):
    """The result is FAILED while one target has no notice, until the earliest retry; it does not count as draining."""
    named = {f"t{index}": each for index, each in enumerate(outcomes)}
    together = combine(named)
    assert (together.effect, together.retry_after_s, together.only_tells) == (effect, wait_s, True)
    assert together.detail == "; ".join(f"{name}: {each.detail}" for name, each in named.items())
