"""What the nodes of these tests say."""

import time

from muster.check import CheckInfo, Needs
from muster.model import Json, Run, Verdict
from muster.wire.messages import Report
from muster_coordinator.model.events import ReportSeen


def check_info(name, scope, objective=None):
    schema: Json = {"type": "object", "properties": {"size": {"type": "integer"}}, "additionalProperties": False}
    return CheckInfo(
        name=name,
        summary="",
        scope=scope,
        needs=Needs.NOTHING,
        cadence_s=None,
        timeout_s=1.0,
        objective=objective,
        params=schema,
    )


def report(node, *numbers, verdict=Verdict.PASS):
    runs = tuple(
        Run(id=f"{node}-{n}", node=node, check="gemm", verdict=verdict, started_at=1000.0 + n, duration_s=1.0, seq=n)
        for n in numbers
    )
    return ReportSeen(Report(sent_at=time.time(), node=node, stream=node, after=0, runs=runs))
