"""Resident children: long-lived processes that answer one question after another.

A child per question would import and initialise NVML each time. So the agent keeps one resident child for cheap checks
and the inventory, and a second one for idle probes and reservations while these are needed.

Supervision: every question has a deadline. A missed deadline means that a call in the child hangs, most likely in a
driver. The agent then kills the child, reports `run.hung`, and starts a new one when it needs it next, after a pause
that doubles with each failure in a row. Example: NVML hangs at every call. The agent kills the child, waits 1 s, tries
again, waits 2 s, 4 s and so on up to 60 s; the first answer resets the pause. The daemon itself never blocks.

Between answers, the child reports when a watch of one of its checks fires.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import structlog
from pydantic import ValidationError

from muster.backoff import backoff_s
from muster.check import Idleness
from muster.model import Data, Finding, Inventory, Json, RankResult
from muster_agent.decide import findings
from muster_agent.decide.orders import Assignment
from muster_agent.runs import child
from muster_agent.runs.launcher import ChildProcess, Launcher, ProtocolError
from muster_agent.runs.process_control import out_of_memory_kills

INVENTORY_TIMEOUT_S = 30.0
"""The first NVML call initialises the driver, which takes seconds per device without persistence mode."""

PROBE_TIMEOUT_S = 2.0
"""The child gives the probes a second; the rest is for a host under load."""

RESERVATION_TIMEOUT_S = 5.0
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
LINGER_S = 1.0
"""How long the child for probes waits for the next question before it ends. While a run holds the node, questions come
more often."""

_LEAVE_S = 1.0
"""How long a child that has closed its end may take to exit by itself, so that the agent learns its exit status."""

log = structlog.get_logger()


class MeasureReply(Data):
    """The result of an assignment."""

    result: RankResult


class InventoryReply(Data):
    """The inventory from the plugins, and by name the errors of the plugins that failed."""

    inventory: Inventory
    failed: dict[str, str]


class IdlenessReply(Data):
    """The answer of all probes together. `why` is empty for IDLE."""

    idleness: Idleness
    why: str


class ReservationReply(Data):
    """The problem with making or releasing reservations; None if there is none."""

    problem: str | None


ReplyT = TypeVar("ReplyT", bound=Data)


class NoResidentAnswer(Exception):
    """The resident child has not answered. `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.summary)
        self.finding = finding


class ResidentChild:
    """A resident child that answers one question at a time. If a caller is cancelled, the child is killed.

    The child keeps the watches of the checks `watched`, and `alert` is called with the name of a check that fires. It
    also watches whether the node leaves, if there is a `leaving` to call with the reason, or with None when it stays.
    """

    def __init__(
        self,
        launcher: Launcher,
        memory_limit_bytes: int | None,
        watched: tuple[str, ...] = (),
        alert: Callable[[str], None] = lambda _check: None,
        leaving: Callable[[str | None], None] | None = None,
    ) -> None:
        self._launcher = launcher
        self._memory_limit_bytes = memory_limit_bytes
        self._watched = watched
        self._alert = alert
        self._leaving = leaving
        self._turn = asyncio.Lock()
        self._child: ChildProcess | None = None
        self._answers: asyncio.Queue[Json | ProtocolError | None] = asyncio.Queue()
        self._listening: asyncio.Task[None] | None = None
        self._answered = asyncio.Event()
        self._failures = 0
        self._not_before = 0.0
        self._kills_before = 0
        self._unknown = ""

    @property
    def pid(self) -> int | None:
        """The child's process id while there is one."""
        return self._child.pid if self._child else None

    async def inventory(self) -> Inventory | None:
        """The inventory of the first plugin that has one, or an empty one; None if the child does not answer."""
        try:
            reply = await self._ask({"inventory": True}, InventoryReply, INVENTORY_TIMEOUT_S)
        except NoResidentAnswer as problem:
            log.error("inventory_unanswered", finding=problem.finding.code, summary=problem.finding.summary)
            return None
        for plugin, error in reply.failed.items():
            log.error("plugin_failed", plugin=plugin, error=error)
        return reply.inventory

    async def idleness(self, own: frozenset[int], *, afresh: bool) -> IdlenessReply:
        """The answer of all idle probes, which ignore the processes `own` and the child; UNKNOWN without an answer.

        `afresh` asks also the probes that rest for a while after they have said IDLE.
        """
        question: Json = {"idleness": [*own], "afresh": afresh}
        try:
            reply = await self._ask(question, IdlenessReply, PROBE_TIMEOUT_S)
        except NoResidentAnswer as problem:
            reply = IdlenessReply(idleness=Idleness.UNKNOWN, why=problem.finding.summary)
        self._log_unknown(reply)
        return reply

    async def reserve(self, purpose: str) -> str | None:
        """Makes all reservations. Returns the problem if one cannot be made."""
        return await self._book({"reserve": purpose})

    async def give_back(self) -> str | None:
        """Releases all reservations. Returns the problem if one cannot be released."""
        return await self._book({"give_back": True})

    async def measure(self, assignment: Assignment, progress: Callable[[str], None]) -> RankResult:
        """Carries out an assignment of scope NODE; raises NoResidentAnswer if there is no result."""
        question: Json = {"assignment": assignment.model_dump(mode="json")}
        return (await self._ask(question, MeasureReply, assignment.timeout_s, progress)).result

    async def keep_only_while_asked(self) -> None:
        """Ends the child when no question came for LINGER_S: an idle agent saves the memory."""
        while True:
            await self._answered.wait()
            self._answered.clear()
            try:
                async with asyncio.timeout(LINGER_S):
                    await self._answered.wait()
            except TimeoutError:
                async with self._turn:
                    if not self._answered.is_set():
                        await self.close()

    async def close(self) -> None:
        """Ends the child."""
        if self._child:
            ending, self._child = self._child, None
            ending.kill()
            await ending.gone()
            if self._listening:
                await self._listening

    async def _book(self, question: Json) -> str | None:
        try:
            return (await self._ask(question, ReservationReply, RESERVATION_TIMEOUT_S)).problem
        except NoResidentAnswer as problem:
            return problem.finding.summary

    def _log_unknown(self, reply: IdlenessReply) -> None:
        """Logs why the probes do not know, once for each reason."""
        unknown = reply.why if reply.idleness is Idleness.UNKNOWN else ""
        if unknown and unknown != self._unknown:
            log.warning("idleness_unknown", why=unknown)
        self._unknown = unknown

    async def _ask(
        self, question: Json, kind: type[ReplyT], timeout_s: float, progress: Callable[[str], None] = lambda _text: None
    ) -> ReplyT:
        """The child's reply. The deadline starts when the child is free to read the question."""
        async with self._turn:
            resident = await self._started()
            try:
                async with asyncio.timeout(timeout_s):
                    resident.send(question)
                    reply = await self._heard(kind, progress)
            except TimeoutError:
                problem = findings.hung(f"the resident process did not answer within {timeout_s:g} s", {})
                raise NoResidentAnswer(await self._give_up(resident, problem)) from None
            except (ProtocolError, ValidationError) as error:
                raise NoResidentAnswer(await self._give_up(resident, findings.garbage(error))) from None
            except asyncio.CancelledError:
                await self.close()
                raise
            if reply is None:
                raise NoResidentAnswer(await self._give_up(resident, None))
            self._failures = 0
            self._answered.set()
            return reply

    async def _started(self) -> ChildProcess:
        if self._child is None:
            pause = self._not_before - asyncio.get_running_loop().time()
            if pause > 0:
                raise NoResidentAnswer(findings.hung(f"the resident process failed; next try in {pause:.1f} s", {}))
            self._kills_before = out_of_memory_kills()
            self._child = await self._launcher.spawn(child.RESIDENT, memory_limit_bytes=self._memory_limit_bytes)
            self._answers = asyncio.Queue()
            self._listening = asyncio.create_task(self._listen(self._child, self._answers), name="resident")
            if self._watched:
                self._child.send({"watch": [*self._watched]})
            if self._leaving is not None:
                self._child.send({"departure": True})
        return self._child

    async def _listen(self, resident: ChildProcess, answers: "asyncio.Queue[Json | ProtocolError | None]") -> None:
        """Reads the messages of a child until it is gone: passes news on, and queues all else as answers.

        The event loop calls `alert` and `leaving`, so that an error in it reaches the loop's exception handler.
        """
        loop = asyncio.get_running_loop()
        try:
            async for message in resident.messages():
                match message:
                    case {"due": str(check)}:
                        loop.call_soon(self._alert, check)
                    case {"leaving": str() | None as why} if self._leaving is not None:
                        log.info("node_stays" if why is None else "node_leaves", why=why)
                        loop.call_soon(self._leaving, why)
                    case {"unwatched": str(check), "error": str(error)}:
                        log.error("watch_failed", check=check, error=error)
                    case _:
                        answers.put_nowait(message)
            answers.put_nowait(None)
        except ProtocolError as error:
            answers.put_nowait(error)

    async def _heard(self, kind: type[ReplyT], progress: Callable[[str], None]) -> ReplyT | None:
        """Waits for the reply and passes on progress before it; None if the child is gone."""
        while True:
            match await self._answers.get():
                case None:
                    return None
                case ProtocolError() as error:
                    raise error
                case {"progress": str(text)}:
                    progress(text)
                case message:
                    return kind.model_validate(message)

    async def _give_up(self, failed: ChildProcess, problem: Finding | None) -> Finding:
        """Kills the child and returns the finding: `problem` with the child's end as evidence, or that end itself."""
        self._child = None
        loop = asyncio.get_running_loop()
        killing = loop.call_later(0.0 if problem else _LEAVE_S, failed.kill)
        ending = await failed.gone()
        killing.cancel()
        self._not_before = loop.time() + pause_s(self._failures)
        self._failures += 1
        if problem is None:
            ran_out = out_of_memory_kills() > self._kills_before
            problem = findings.ended_without_result(ending, memory_ran_out=ran_out)
        if ending.stuck:
            evidence = {**problem.evidence, "unkillable_pids": [*ending.stuck]}
            problem = problem.model_copy(update={"evidence": evidence})
        return findings.with_tail(problem, failed.tail)


def pause_s(failures: int) -> float:
    """Seconds until the next attempt after `failures` failures in a row, counted from 0."""
    return backoff_s(failures + 1, FIRST_PAUSE_S, LONGEST_PAUSE_S)
