"""The page `/acceptance`: the acceptances that were sent in, the latest first."""

from dataclasses import dataclass

from muster.model import Verdict
from muster_coordinator.model.acceptance_records import AcceptanceFilter, AcceptanceSummary

PAGE_SIZE = 50

VERDICTS = tuple(Verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceList:
    """One page of the acceptances that fit a filter; `next_cursor` asks for the page after this one."""

    at: float
    wanted: AcceptanceFilter
    items: tuple[AcceptanceSummary, ...]
    is_first: bool
    next_cursor: str | None

    @property
    def is_filtered(self) -> bool:
        return self.wanted != AcceptanceFilter()

    @property
    def why_empty(self) -> str:
        """Why no acceptance is listed; empty if some are."""
        if self.items:
            return ""
        if not self.is_first:
            return "There are no earlier acceptances."
        return "No acceptance fits this filter." if self.is_filtered else "No report has been sent yet."
