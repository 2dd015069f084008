"""What one check of a configuration found."""

from typing import NamedTuple

from muster.model import Verdict


class SetupFinding(NamedTuple):
    """What was looked at, whether all is well with it, and a sentence for people: what is wrong, and what to change."""

    check: str
    verdict: Verdict
    detail: str
