"""Commands that take their time: each goes on beside the others and ends as an event."""

import asyncio
import contextlib

import structlog

from muster_agent.decide.events import (
    ConnectToRankZero,
    Event,
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
"""How long an agent that ends tries to. The next one on this node begins with it."""

CLOSE_WITHIN_S = 1.0

log = structlog.get_logger()


class SlowCommands:
    """Runs errands. `resident` answers in the order in which it is asked, and is asked by nobody else.

    A check that takes its time in the same process would keep it from seeing that work has come, and a probe that
    hangs would look like a check that does.
    """

    def __init__(self, resident: ResidentChild, runner: Runner, ports: Ports) -> None:
        self._resident = resident
        self._runner = runner
        self._ports = ports

    async def run(self, errand: SlowCommand) -> Event:
        """Runs one to its end; what has come of it."""
        match errand:
            case ProbeIdle(afresh):
                seen = await self._resident.idleness(self._runner.own_pids(), afresh=afresh)
                return IdlenessSeen(seen.idleness, seen.why)
            case ReserveNode(run, purpose):
                return await self._reserve(run, purpose)
            case ReleaseReservation():
                return await self._give_back()
            case OpenPort(group):
                return await self._ports.open(group)
            case ConnectToRankZero():
                return await reach(errand)

    async def give_back_for_good(self) -> None:
        """Gives the node back when nothing runs on it any more and nothing will."""
        try:
            async with asyncio.timeout(GIVE_BACK_WITHIN_S):
                await self._give_back()
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

    async def _give_back(self) -> ReservationReleased:
        problem = await self._resident.give_back()
        if problem is not None:
            log.error("node_not_given_back", problem=problem)
        return ReservationReleased(problem)
