"""What operators do, for the API and for the forms of pages alike. Each method returns when the change is stored.

They raise Refused, without any change, if the fleet does not accept the request.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from pydantic import JsonValue

from muster.wire.messages import new_id
from muster_coordinator.model.events import FleetEvent, RunRequested, SweepAbortRequested, SweepRequested
from muster_coordinator.model.quarantine_events import (
    FreezeLifted,
    HoldRequested,
    NodeForgotten,
    QuarantineRequest,
    ReleaseRequested,
)
from muster_coordinator.model.sweep_id import sweep_id
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.runtime.pipeline import Pipeline

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Operations:
    """The changes that people request. `by` is who does."""

    pipeline: Pipeline

    async def hold(self, node: str, by: str, reason: str) -> None:
        """Keeps a node as it is, in service or out."""
        await self._decide(HoldRequested(node=node, by=by, reason=reason))

    async def release(self, node: str, by: str, reason: str, *, untested: bool) -> None:
        """Ends a hold. A drained node returns after its tests, or at once if `untested`."""
        await self._decide(ReleaseRequested(node=node, by=by, reason=reason, untested=untested))

    async def forget(self, node: str, by: str, reason: str) -> None:
        """Removes a silent node from the fleet."""
        await self._decide(NodeForgotten(node=node, by=by, reason=reason))

    async def unfreeze(self, by: str, reason: str) -> None:
        """Lifts a mass-event freeze."""
        await self._decide(FreezeLifted(by=by, reason=reason))

    async def start_run(self, node: str, check: str, params: Mapping[str, JsonValue], by: str | None) -> str:
        """Runs a check of a node now. Returns the id that the run will have."""
        run = new_id()
        await self._handle(RunRequested(run, node, check, dict(params), by))
        return run

    async def start_sweep(self, wanted: SweepRequest, by: str | None) -> str:
        """Starts a sweep. Returns its id."""
        sweep = sweep_id(new_id())
        await self._handle(SweepRequested(sweep, wanted, by=by))
        return sweep

    async def abort_sweep(self, sweep: str, by: str | None) -> None:
        """Ends a running sweep now."""
        await self._handle(SweepAbortRequested(sweep, f"aborted by {by or 'a request to the API'}"))

    async def _decide(self, event: QuarantineRequest) -> None:
        await self._handle(event)
        log.info("quarantine_request", **event.model_dump(mode="json"))

    async def _handle(self, event: FleetEvent) -> None:
        await self.pipeline.feed(event).wait()
