"""The order in which an acceptance of a job ends."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from benchmarks.free_ports import free_port

from muster.acceptance import AcceptanceReport
from muster.check import Params
from muster.model import Device, Inventory, Measurement, Run, Verdict
from muster_agent.acceptance.exchange import MeasureStep, MemberHello, StepDone
from muster_agent.acceptance.job import AcceptanceJob
from muster_agent.acceptance.local_runner import LocalRunner
from muster_agent.acceptance.procedure import accept
from muster_agent.acceptance.selection import SelectedCheck
from muster_agent.acceptance.suites import SuitePlan, SuiteStep
from muster_agent.acceptance.terminal import ProgressPrinter

ONE_GPU = Inventory(devices=(Device(index=0, uuid="GPU-0", model="pretended"),))


class PassingRunner(LocalRunner):
    """A node on which everything passes, without processes."""

    def __init__(self) -> None:
        self.node = "node-0"
        self.inventory = ONE_GPU

    async def run(self, one: SelectedCheck) -> Run:
        return passed(self.node, one.check.name)


def passed(node: str, check: str) -> Run:
    return Run(id=node, node=node, check=check, verdict=Verdict.PASS, started_at=time.time(), duration_s=0.0)


class OtherMember:
    """The member with rank 1, on a socket of its own, so that it sees what is sent before the leader goes on."""

    def __init__(self, port: int, digest: str) -> None:
        self.port = port
        self._digest = digest
        self.connection = socket.socket()

    def take_part(self) -> None:
        """Joins the job and reports the one step that it is told to measure."""
        while self.connection.connect_ex(("127.0.0.1", self.port)):
            self.connection.close()
            self.connection = socket.socket()
            time.sleep(0.01)
        hello = MemberHello(
            rank=1,
            node="node-1",
            local_rank=0,
            local_size=1,
            ranks=1,
            inventory=ONE_GPU,
            suite=self._digest,
        )
        self.connection.sendall(hello.model_dump_json().encode() + b"\n")
        MeasureStep.model_validate_json(self.connection.makefile().readline())
        done = StepDone(step=0, run=passed("node-1", "throwaway"))
        self.connection.sendall(done.model_dump_json().encode() + b"\n")

    def has_been_sent_more(self) -> bool:
        """Whether the leader has sent anything after the step."""
        self.connection.setblocking(False)
        try:
            return bool(self.connection.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self.connection.setblocking(True)


@pytest.fixture
def plan(check) -> SuitePlan:
    selected = SelectedCheck(check=check(lambda *_: Measurement()), params=Params(), timeout_s=20.0)
    return SuitePlan(suite="mini", steps=(SuiteStep(section="ENV", selected=selected),))


@pytest.fixture
def other(plan) -> Iterator[OtherMember]:
    member = OtherMember(free_port(), plan.digest)
    thread = threading.Thread(target=member.take_part)
    thread.start()
    yield member
    thread.join()
    member.connection.close()


async def test_the_report_is_delivered_before_any_member_may_end(plan, other):
    """Torchrun kills the leader as soon as a member has exited with the 1 of WARN: then it is too late for a report."""
    delivered: list[AcceptanceReport] = []

    async def deliver(report: AcceptanceReport) -> None:
        assert not other.has_been_sent_more()
        delivered.append(report)

    job = AcceptanceJob(rank=0, size=2, local_rank=0, local_size=1, address="127.0.0.1", port=other.port)
    verdict = await accept(plan, PassingRunner(), job, ProgressPrinter(), 30.0, deliver=deliver)
    assert verdict is Verdict.PASS
    assert [node.name for node in delivered[0].nodes] == ["node-0", "node-1"]
    assert other.has_been_sent_more()
