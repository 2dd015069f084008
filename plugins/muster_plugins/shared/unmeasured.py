"""What keeps a check from finding anything out: `measure` tells it as data, and `judge` turns it into a finding."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from muster import Context, Finding, Measurement, Severity
from muster.model import Json
from muster_plugins.shared.programs import Completed, NotRun, TimedOut, run_program

_SHARE_FOR_THE_PROGRAM = 0.95
"""Of a run's deadline. The rest is for telling that the program was not done."""

_MOST_CHARACTERS = 2000


class Unmeasured(Exception):
    """Nothing could be found out. `word` ends the finding's code, so it stays the same for good."""

    def __init__(self, word: str, summary: str, **evidence: JsonValue) -> None:
        super().__init__(summary)
        self.word = word
        self.evidence: Json = evidence

    def measurement(self, facts: Json) -> Measurement:
        """A measurement without numbers that says why there are none."""
        reason: Json = {"word": self.word, "summary": str(self), "evidence": self.evidence}
        return Measurement(facts={**facts, "unmeasured": reason})


def unmeasured_finding(check: str, measurement: Measurement) -> Finding | None:
    """The finding of severity UNKNOWN that says why `measurement` holds no numbers; None when it is one."""
    reason = measurement.facts.get("unmeasured")
    if not isinstance(reason, dict):
        return None
    return Finding(
        code=f"{check}.{reason['word']}",
        summary=str(reason["summary"]),
        severity=Severity.UNKNOWN,
        evidence=reason["evidence"] if isinstance(reason["evidence"], dict) else {},
    )


def run_within(
    context: Context,
    argv: Sequence[str | Path],
    *,
    timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Completed:
    """`run_program` so that it ends before the run's deadline; Unmeasured as `not_started` or `timed_out`.

    `timeout_s` is a deadline of the caller's own, which holds if it is the earlier one.
    """
    own_s = context.timeout_s * _SHARE_FOR_THE_PROGRAM
    try:
        return run_program(argv, timeout_s=min(own_s, timeout_s or own_s), env=env, cwd=cwd)
    except NotRun as error:
        raise Unmeasured("not_started", str(error)) from None
    except TimedOut as error:
        raise Unmeasured("timed_out", str(error), output=tail(error.said)) from None


def tail(text: str) -> str:
    """The end of what a program said, short enough for evidence."""
    return text.strip()[-_MOST_CHARACTERS:]
