"""The form of a sweep: its fields, which a link to the form may also have."""

from pydantic import Field

from muster.model import Name
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.web.requests import MOST_SELECTION, Request


class SweepFields(Request):
    """What a form or a link says of a sweep; the API takes more. Without a selection all nodes take part."""

    check: Name | None = None
    select: str | None = Field(None, max_length=MOST_SELECTION)
    strategy: Strategy | None = None
    max_parallel: str | None = Field(None, max_length=20)


class SweepForm(SweepFields):
    """A sweep as the form requests it."""

    check: Name

    def request(self) -> SweepRequest:
        return SweepRequest(**self.model_dump(exclude_none=True))
