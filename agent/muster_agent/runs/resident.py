"""A resident child: a long-lived process that answers question after question.

An agent has one for cheap checks and the inventory and, as long as it is needed, one for idle probes and reservations.

It is watched. A question that is not answered by its deadline means that a call inside, most likely into a driver,
hangs: the child is killed and started again when it is needed next, after a pause that doubles with each failure.
Between its answers the child tells of what the watches of its checks have seen.
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
from muster_agent.runs.launcher import Garbage, Launcher, Spawned
from muster_agent.runs.process import out_of_memory_kills

INVENTORY_TIMEOUT_S = 30.0
"""The first NVML call initialises the driver, which takes seconds per device without persistence mode."""

PROBE_TIMEOUT_S = 2.0
"""The probes have a second, and the child sees to that; the rest is for a host under load."""

RESERVATION_TIMEOUT_S = 5.0
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
LINGER_S = 1.0
"""How long a child that is kept only while it is asked waits for the next question. While a run holds the node, probes
are asked more often than that."""

_LEAVE_S = 1.0
"""How long a child that has hung up may take to end by itself, so that the way it ends can be told."""

log = structlog.get_logger()


class MeasureReply(Data):
    """What came of an assignment."""

    result: RankResult


class InventoryReply(Data):
    """What the plugins found, and by name what was wrong with those that failed at it."""

    inventory: Inventory
    failed: dict[str, str]


class IdlenessReply(Data):
    """What all probes say together; `why` is empty when that is IDLE."""

    idleness: Idleness
    why: str


class ReservationReply(Data):
    """What came of making all reservations or of giving them back; None when that is done."""

    problem: str | None


Reply = TypeVar("Reply", bound=Data)


class Unanswered(Exception):
    """The resident child has no answer; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.summary)
        self.finding = finding


class Resident:
    """Asks a resident child, one question at a time; a caller that is cancelled meanwhile has it killed.

    `watched` names the checks whose watches the child shall keep; `alert` is called with the name of one that fires.
    """

    def __init__(
        self,
        launcher: Launcher,
        memory_limit_bytes: int | None,
        watched: tuple[str, ...] = (),
        alert: Callable[[str], None] = lambda _check: None,
    ) -> None:
        self._launcher = launcher
        self._memory_limit_bytes = memory_limit_bytes
        self._watched = watched
        self._alert = alert
        self._turn = asyncio.Lock()
        self._child: Spawned | None = None
        self._answers: asyncio.Queue[Json | Garbage | None] = asyncio.Queue()
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
        """What the first plugin that can tell says, empty when none can; None when there is no answer."""
        try:
            reply = await self._ask({"inventory": True}, InventoryReply, INVENTORY_TIMEOUT_S)
        except Unanswered as problem:
            log.error("inventory_unanswered", finding=problem.finding.code, summary=problem.finding.summary)
            return None
        for plugin, error in reply.failed.items():
            log.error("plugin_failed", plugin=plugin, error=error)
        return reply.inventory

    async def idleness(self, own: frozenset[int], *, afresh: bool) -> IdlenessReply:
        """What all idle probes say together, not counting the processes `own` and the child; UNKNOWN without an answer.

        `afresh` asks those as well that want to be left alone for a while after they have said IDLE.
        """
        question: Json = {"idleness": [*own], "afresh": afresh}
        try:
            reply = await self._ask(question, IdlenessReply, PROBE_TIMEOUT_S)
        except Unanswered as problem:
            reply = IdlenessReply(idleness=Idleness.UNKNOWN, why=problem.finding.summary)
        self._log_unknown(reply)
        return reply

    async def reserve(self, purpose: str) -> str | None:
        """Makes all reservations; says why they are not made, or may not be."""
        return await self._book({"reserve": purpose})

    async def give_back(self) -> str | None:
        """Gives all reservations back; says why some are not, or may not be."""
        return await self._book({"give_back": True})

    async def measure(self, assignment: Assignment, progress: Callable[[str], None]) -> RankResult:
        """Carries out an assignment of scope NODE; Unanswered when no result comes of it."""
        question: Json = {"assignment": assignment.model_dump(mode="json")}
        return (await self._ask(question, MeasureReply, assignment.timeout_s, progress)).result

    async def keep_only_while_asked(self) -> None:
        """Ends the child whenever it has not been asked for LINGER_S: an agent at rest has no memory for it."""
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
        """Ends the child, whatever it does."""
        if self._child:
            ending, self._child = self._child, None
            ending.kill()
            await ending.gone()
            if self._listening:
                await self._listening

    async def _book(self, question: Json) -> str | None:
        try:
            return (await self._ask(question, ReservationReply, RESERVATION_TIMEOUT_S)).problem
        except Unanswered as problem:
            return problem.finding.summary

    def _log_unknown(self, reply: IdlenessReply) -> None:
        """Logs why nobody knows, but not again and again."""
        unknown = reply.why if reply.idleness is Idleness.UNKNOWN else ""
        if unknown and unknown != self._unknown:
            log.warning("idleness_unknown", why=unknown)
        self._unknown = unknown

    async def _ask(
        self, question: Json, kind: type[Reply], timeout_s: float, progress: Callable[[str], None] = lambda _text: None
    ) -> Reply:
        """The child's reply. The deadline counts from when the child is free to hear."""
        async with self._turn:
            resident = await self._started()
            try:
                async with asyncio.timeout(timeout_s):
                    resident.send(question)
                    reply = await self._heard(kind, progress)
            except TimeoutError:
                problem = findings.hung(f"the resident process did not answer within {timeout_s:g} s", {})
                raise Unanswered(await self._give_up(resident, problem)) from None
            except (Garbage, ValidationError) as error:
                raise Unanswered(await self._give_up(resident, findings.garbage(error))) from None
            except asyncio.CancelledError:
                await self.close()
                raise
            if reply is None:
                raise Unanswered(await self._give_up(resident, None))
            self._failures = 0
            self._answered.set()
            return reply

    async def _started(self) -> Spawned:
        if self._child is None:
            pause = self._not_before - asyncio.get_running_loop().time()
            if pause > 0:
                raise Unanswered(findings.hung(f"the resident process failed and rests for {pause:.1f} s", {}))
            self._kills_before = out_of_memory_kills()
            self._child = await self._launcher.spawn(child.RESIDENT, memory_limit_bytes=self._memory_limit_bytes)
            self._answers = asyncio.Queue()
            self._listening = asyncio.create_task(self._listen(self._child, self._answers), name="resident")
            if self._watched:
                self._child.send({"watch": [*self._watched]})
        return self._child

    async def _listen(self, resident: Spawned, answers: "asyncio.Queue[Json | Garbage | None]") -> None:
        """Takes what a child says until it is gone: alerts at once, anything else as an answer.

        Who is alerted is called by the loop, which tells everybody when that goes wrong.
        """
        loop = asyncio.get_running_loop()
        try:
            async for message in resident.messages():
                match message:
                    case {"due": str(check)}:
                        loop.call_soon(self._alert, check)
                    case {"unwatched": str(check), "error": str(error)}:
                        log.error("watch_failed", check=check, error=error)
                    case _:
                        answers.put_nowait(message)
            answers.put_nowait(None)
        except Garbage as error:
            answers.put_nowait(error)

    async def _heard(self, kind: type[Reply], progress: Callable[[str], None]) -> Reply | None:
        """The reply, with what progress was made before it; None when the child is gone."""
        while True:
            match await self._answers.get():
                case None:
                    return None
                case Garbage() as error:
                    raise error
                case {"progress": str(text)}:
                    progress(text)
                case message:
                    return kind.model_validate(message)

    async def _give_up(self, failed: Spawned, problem: Finding | None) -> Finding:
        """Kills the child; what is known of its end goes into the finding, or is the finding if there is none."""
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
    """How long the child rests after its failure number `failures` in a row, counted from 0; in seconds."""
    return backoff_s(failures + 1, FIRST_PAUSE_S, LONGEST_PAUSE_S)
