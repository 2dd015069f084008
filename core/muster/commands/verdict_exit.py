"""The exit code of commands that end with a verdict."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from muster.model import Verdict


class FailOn(StrEnum):
    """The mildest verdict for which the exit code is not 0."""

    WARN = "warn"
    FAIL = "fail"


FailOnOption = Annotated[
    FailOn, typer.Option("--fail-on", help="The mildest verdict for which the exit code is not 0.")
]


def exit_code(verdict: "Verdict", fail_on: FailOn) -> int:
    """The exit code for a verdict. UNKNOWN is never 0: what could not be tested has not passed."""
    from muster.model import EXIT_CODES, Verdict  # noqa: PLC0415 (an option needs only the names above)

    return 0 if verdict is Verdict.WARN and fail_on is FailOn.FAIL else EXIT_CODES[verdict]
