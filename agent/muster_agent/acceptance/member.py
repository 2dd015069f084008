"""A member of a job. Every process is one: it carries out the leader's steps and reports the runs."""

import asyncio
import contextlib
import socket
from collections.abc import Sequence

from muster.errors import Unavailable
from muster.model import Run
from muster_agent.acceptance.exchange import (
    MOST_LINE_BYTES,
    AbortStep,
    EndJob,
    GroupHosted,
    HostGroup,
    JobConnection,
    JoinStep,
    MeasureStep,
    MemberHello,
    PassRendezvous,
    RanksWaiting,
    StepDone,
)
from muster_agent.acceptance.job import AcceptanceJob
from muster_agent.acceptance.local_runner import LocalRunner
from muster_agent.acceptance.selection import SelectedCheck
from muster_agent.decide.orders import RankPlace

_PAUSE_S = 0.2


class JobMember:
    """Follows the leader through the steps."""

    def __init__(self, job: AcceptanceJob, steps: Sequence[SelectedCheck], local_runner: LocalRunner) -> None:
        self._job = job
        self._steps = steps
        self._local_runner = local_runner
        self._listener: socket.socket | None = None
        """Where rank 0 of the next group step will be, if this node hosts it."""

    async def follow(self, address: str, digest: str, within_s: float) -> EndJob:
        """The end of the job. Raises Unavailable if the leader is lost or not reached in `within_s` seconds."""
        self._leader = await _connected(address, self._job.port, within_s)
        self._leader.send(self._hello(digest))
        try:
            while True:
                match await self._leader.receive():
                    case MeasureStep(step=step):
                        self._leader.send(StepDone(step=step, run=await self._local_runner.run(self._steps[step])))
                    case HostGroup() as host:
                        self._leader.send(GroupHosted(step=host.step, port=self._listen(host.address)))
                    case JoinStep() as join:
                        self._leader.send(StepDone(step=join.step, run=await self._take_part(join)))
                    case EndJob() as end:
                        return end
                    case None:
                        raise Unavailable("the process with rank 0 ended before the job was done")
        finally:
            self._close_listener()
            await self._leader.close()

    def _listen(self, address: str) -> int:
        """Opens a port for rank 0 of a group, and returns it."""
        self._close_listener()  # that of a group that was never formed
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server(("", 0), family=family)
        port: int = self._listener.getsockname()[1]
        return port

    def _take_listener(self) -> socket.socket | None:
        taken, self._listener = self._listener, None
        return taken

    def _close_listener(self) -> None:
        if listener := self._take_listener():
            listener.close()

    def _hello(self, digest: str) -> MemberHello:
        """Introduces this process. It brings one rank if other processes share its node, else all devices."""
        job = self._job
        return MemberHello(
            rank=job.rank,
            node=self._local_runner.node,
            local_rank=job.local_rank,
            local_size=job.local_size,
            ranks=self._local_runner.ranks if job.local_size == 1 else 1,
            inventory=self._local_runner.inventory,
            suite=digest,
        )

    async def _take_part(self, join: JoinStep) -> Run:
        """Runs the ranks of a group step, and lets them pass the rendezvous or ends them as the leader says."""
        async with asyncio.TaskGroup() as tasks:
            obeying = tasks.create_task(self._obey(), name="leader")
            run = await self._local_runner.run_in_group(
                self._steps[join.step],
                join.group,
                _places(join),
                self._take_listener(),
                on_ready=lambda: self._leader.send(RanksWaiting(step=join.step)),
            )
            obeying.cancel()
        return run

    async def _obey(self) -> None:
        while True:
            match await self._leader.receive():
                case PassRendezvous():
                    self._local_runner.go()
                case AbortStep(reason=reason):
                    self._local_runner.stop(reason)
                case None:
                    self._local_runner.stop("the process with rank 0 has ended")
                    return


def _places(join: JoinStep) -> tuple[RankPlace, ...]:
    return tuple(
        RankPlace(
            rank=join.first_rank + number,
            local_rank=join.local_rank + number,
            local_world_size=join.local_size,
            world_size=join.world_size,
            master_addr=join.address,
            master_port=join.port,
            secret=join.secret,
        )
        for number in range(join.ranks)
    )


async def _connected(address: str, port: int, within_s: float) -> JobConnection:
    problem = "no answer"
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while True:
                try:
                    return JobConnection(*await asyncio.open_connection(address, port, limit=MOST_LINE_BYTES))
                except OSError as error:
                    problem = str(error)
                    await asyncio.sleep(_PAUSE_S)
    where = f"{address} port {port}"
    raise Unavailable(f"the process with rank 0 cannot be reached at {where} within {within_s:g} s: {problem}")
