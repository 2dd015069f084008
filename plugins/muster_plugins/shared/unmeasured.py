"""What prevents a measurement: `measure` returns it as data, and `judge` turns it into a finding."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from muster import Context, Finding, Measurement, Severity
from muster.model import Json
from muster_plugins.shared.programs import Completed, NotRun, TimedOut, run_program

_SHARE_FOR_THE_PROGRAM = 0.95
"""Share of a run's deadline for the program. The rest is for reporting that it did not finish."""

_MOST_CHARACTERS = 2000


class Unmeasured(Exception):
    """Nothing could be measured. `word` ends the finding's code and must never change."""

    def __init__(self, word: str, summary: str, **evidence: JsonValue) -> None:
        super().__init__(summary)
        self.word = word
        self.evidence: Json = evidence

    def measurement(self, facts: Json) -> Measurement:
        """A measurement without numbers that says why there are none."""
        reason: Json = {"word": self.word, "summary": str(self), "evidence": self.evidence}
        return Measurement(facts={**facts, "unmeasured": reason})


def unmeasured_finding(check: str, measurement: Measurement) -> Finding | None:
    """The UNKNOWN finding that says why `measurement` has no numbers; None if it has."""
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
    """Runs a program so that it ends before the run's deadline. Raises Unmeasured as `not_started` or `timed_out`.

    `timeout_s` is the caller's own deadline, which applies if it is earlier.
    """
    own_s = context.timeout_s * _SHARE_FOR_THE_PROGRAM
    try:
        return run_program(argv, timeout_s=min(own_s, timeout_s or own_s), env=env, cwd=cwd)
    except NotRun as error:
        raise Unmeasured("not_started", str(error)) from None
    except TimedOut as error:
        raise Unmeasured("timed_out", str(error), output=tail(error.said)) from None


def tail(text: str) -> str:
    """The end of a program's output, short enough for evidence."""
    return text.strip()[-_MOST_CHARACTERS:]
