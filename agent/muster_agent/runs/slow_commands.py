"""Commands that take time. Each runs beside the others and ends with an event."""

import asyncio
import contextlib

import structlog

from muster_agent.decide.events import (
    AgentEvent,
    ConnectToRankZero,
    IdlenessSeen,
    NodeReserved,
    OpenPort,
    ProbeIdle,
    ReleaseReservation,
    ReservationFailed,
    ReservationReleased,
    ReserveNode,
)
from muster_agent.runs.ports import Ports, reach
from muster_agent.runs.resident import ResidentChild
from muster_agent.runs.runner import Runner

SlowCommand = ProbeIdle | ReserveNode | ReleaseReservation | OpenPort | ConnectToRankZero

GIVE_BACK_WITHIN_S = 1.0
"""How long an agent that stops tries to release the node. The next agent on this node starts with a release."""

CLOSE_WITHIN_S = 1.0

log = structlog.get_logger()


class SlowCommands:
    """Carries out slow commands. `resident` is a separate child that only asks probes and makes reservations.

    If it were shared with checks, a slow check would delay the probes, and a hanging probe would look like a hanging
    check.
    """

    def __init__(self, resident: ResidentChild, runner: Runner, ports: Ports) -> None:
        self._resident = resident
        self._runner = runner
        self._ports = ports

    async def run(self, command: SlowCommand) -> AgentEvent:
        """Carries out one command and returns the event with its result."""
        match command:
            case ProbeIdle(afresh):
                seen = await self._resident.idleness(self._runner.own_pids(), afresh=afresh)
                return IdlenessSeen(seen.idleness, seen.why)
            case ReserveNode(run, purpose):
                return await self._reserve(run, purpose)
            case ReleaseReservation():
                return await self._release()
            case OpenPort(group):
                return await self._ports.open(group)
            case ConnectToRankZero():
                return await reach(command)

    async def release_for_good(self) -> None:
        """Releases the node when the agent stops and nothing runs on it."""
        try:
            async with asyncio.timeout(GIVE_BACK_WITHIN_S):
                await self._release()
        except TimeoutError:
            log.error("node_not_given_back", problem=f"not done within {GIVE_BACK_WITHIN_S:g} s")

    async def close(self) -> None:
        """Ends the resident child."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN_S):
                await self._resident.close()

    async def _reserve(self, run: str, purpose: str) -> NodeReserved | ReservationFailed:
        problem = await self._resident.reserve(purpose)
        if problem is None:
            log.info("node_reserved", purpose=purpose)
            return NodeReserved(run)
        log.warning("node_not_reserved", purpose=purpose, problem=problem)
        return ReservationFailed(run, problem)

    async def _release(self) -> ReservationReleased:
        problem = await self._resident.give_back()
        if problem is not None:
            log.error("node_not_given_back", problem=problem)
        return ReservationReleased(problem)
