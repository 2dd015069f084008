"""What operators do, for the API and for the forms of pages alike. Each method returns when the change is stored.

They raise Refused, without any change, if the fleet does not accept the request. A change and its entry in the audit
log are stored together, or not at all. The entry is logged as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from pydantic import JsonValue

from muster.references import Reference
from muster.wire.messages import new_id
from muster_coordinator.model.audit import AuditEntry, Requester
from muster_coordinator.model.events import (
    BaselineReset,
    FleetEvent,
    ReferenceRemoved,
    ReferenceSet,
    RunRequested,
    SweepAbortRequested,
    SweepRequested,
)
from muster_coordinator.model.quarantine_events import (
    FreezeLifted,
    HoldRequested,
    NodeForgotten,
    ReleaseRequested,
)
from muster_coordinator.model.sweep_id import sweep_id
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.runtime.pipeline import Pipeline

MOST_NODES = 50
"""The audit log names the nodes of a sweep up to this number; the sweep itself has all of them."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Operations:
    """The changes that people request. `who` must have a name for a decision about nodes."""

    pipeline: Pipeline

    async def hold(self, node: str, who: Requester, reason: str) -> None:
        """Keeps a node as it is, in service or out."""
        event = HoldRequested(node=node, by=who.name, reason=reason)
        await self._change(event, self._entry("hold_node", node, who, reason))

    async def release(self, node: str, who: Requester, reason: str, *, untested: bool) -> None:
        """Ends a hold. A drained node returns after its tests, or at once if `untested`."""
        event = ReleaseRequested(node=node, by=who.name, reason=reason, untested=untested)
        await self._change(event, self._entry("release_node", node, who, reason, untested=untested))

    async def forget(self, node: str, who: Requester, reason: str) -> None:
        """Removes a silent node from the fleet."""
        event = NodeForgotten(node=node, by=who.name, reason=reason)
        await self._change(event, self._entry("forget_node", node, who, reason))

    async def unfreeze(self, who: Requester, reason: str) -> None:
        """Lifts a mass-event freeze."""
        await self._change(FreezeLifted(by=who.name, reason=reason), self._entry("lift_freeze", None, who, reason))

    async def start_run(self, node: str, check: str, params: Mapping[str, JsonValue], who: Requester) -> str:
        """Runs a check of a node now. Returns the id that the run will have."""
        run = new_id()
        event = RunRequested(run, node, check, dict(params), who.name or None)
        await self._change(event, self._entry("start_run", node, who, run=run, check=check, params=dict(params)))
        return run

    async def start_sweep(self, wanted: SweepRequest, who: Requester) -> str:
        """Starts a sweep. Returns its id."""
        sweep = sweep_id(new_id())
        details = wanted.model_dump(mode="json", exclude_defaults=True)
        if wanted.nodes is not None and len(wanted.nodes) > MOST_NODES:
            details["nodes"] = len(wanted.nodes)
        event = SweepRequested(sweep, wanted, by=who.name or None)
        await self._change(event, self._entry("start_sweep", sweep, who, **details))
        return sweep

    async def abort_sweep(self, sweep: str, who: Requester) -> None:
        """Ends a running sweep now."""
        event = SweepAbortRequested(sweep, f"aborted by {who.name or 'a request to the API'}")
        await self._change(event, self._entry("abort_sweep", sweep, who))

    async def set_reference(self, reference: Reference, who: Requester) -> None:
        """Sets a reference in place of the operator's with the same check, metric and `when`."""
        details = reference.model_dump(mode="json", exclude_none=True)
        await self._change(ReferenceSet(reference), self._entry("set_reference", reference.key, who, **details))

    async def remove_reference(self, key: str, who: Requester) -> None:
        """Removes a reference of the operator."""
        await self._change(ReferenceRemoved(key), self._entry("remove_reference", key, who))

    async def reset_baseline(self, baseline: str, who: Requester) -> None:
        """Makes the present values those that count as normal."""
        await self._change(BaselineReset(baseline), self._entry("reset_baseline", baseline, who))

    def _entry(
        self, action: str, subject: str | None, who: Requester, reason: str | None = None, **details: JsonValue
    ) -> AuditEntry:
        return AuditEntry(
            id=new_id(),
            at=self.pipeline.clock(),
            action=action,
            subject=subject,
            by=who.name or None,
            credential=who.credential,
            address=who.address,
            forwarded_for=who.forwarded_for,
            reason=reason,
            details=details,
        )

    async def _change(self, event: FleetEvent, entry: AuditEntry) -> None:
        await self.pipeline.feed(event, entry).wait()
        log.info("change_requested", **entry.model_dump(mode="json", exclude_none=True))
