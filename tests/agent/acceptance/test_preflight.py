"""What a preflight of one node comes to, without processes."""

from tests.agent.acceptance.test_procedure import PassingRunner

from muster.acceptance import AcceptanceReport, contradictions
from muster.check import Params
from muster.model import Measurement, Verdict
from muster.wire.messages import PluginInfo
from muster_agent.acceptance.preflight import PreflightRequest, preflight
from muster_agent.acceptance.selection import SelectedCheck
from muster_agent.acceptance.suites import SuitePlan, SuiteStep
from muster_agent.acceptance.terminal import ProgressPrinter


async def test_a_node_whose_plugins_do_not_load_is_unknown(check):
    """The checks of a broken plugin are missing, so nobody can say that the node has passed."""
    selected = SelectedCheck(check=check(lambda *_: Measurement()), params=Params(), timeout_s=20.0)
    broken = PluginInfo(name="broken", distribution="d", version="1", status="failed", error="no such module")
    plan = SuitePlan(suite="mini", steps=(SuiteStep(section="ENV", selected=selected),), failed=(broken,))
    reports: list[AcceptanceReport] = []

    async def deliver(report: AcceptanceReport) -> None:
        reports.append(report)

    request = PreflightRequest(plan=plan, need=None, join_within_s=1.0)
    end = await preflight(request, PassingRunner(), None, ProgressPrinter(), deliver=deliver)
    assert end.gang is None
    assert end.conclusion is not None
    assert (end.conclusion.decision, end.conclusion.verdict) == ("REJECTED", Verdict.UNKNOWN)
    assert [*contradictions(reports[0])] == []
