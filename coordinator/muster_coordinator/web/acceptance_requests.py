"""The models of queries and bodies about acceptances."""

from pydantic import Field

from muster.acceptance import AcceptanceReport
from muster.model import Name, Verdict
from muster_coordinator.model.acceptance_records import AcceptanceFilter
from muster_coordinator.web.requests import OneLine, PageQuery, Request, example


class NewAcceptance(Request):
    """The body of POST /acceptance: the report, as `muster check run --suite … --report-dir` writes it in JSON."""

    model_config = example(
        by="ann@example.org",
        report={
            "suite": "quick",
            "verdict": "PASS",
            "started_at": "2026-01-31T12:00:00Z",
            "duration_s": 61.5,
            "nodes": [{"name": "gpu-0042", "inventory": {"machine_type": "a3-highgpu-8g"}}],
            "steps": [
                {
                    "section": "COMPUTE",
                    "check": "gemm",
                    "summary": "Speed of matrix products",
                    "verdict": "PASS",
                    "duration_s": 12.5,
                    "runs": [
                        {
                            "id": "ab12cd34",
                            "node": "gpu-0042",
                            "check": "gemm",
                            "verdict": "PASS",
                            "metrics": {"tflops": [601.5, 598.0]},
                            "started_at": "2026-01-31T12:00:01Z",
                            "duration_s": 12.5,
                        }
                    ],
                }
            ],
            "simulated": False,
        },
    )

    by: OneLine | None = Field(
        None, description="Who sends it; needed with a token, and ignored for those who have logged in under a name"
    )
    report: AcceptanceReport


class AcceptanceQuery(PageQuery):
    """The acceptances to list."""

    node: Name | None = Field(None, description="Acceptances of this node, alone or with others")
    verdict: Verdict | None = Field(None, description="Acceptances with this verdict")
    suite: OneLine | None = Field(None, description="Acceptances with this suite")

    def filter(self) -> AcceptanceFilter:
        return AcceptanceFilter(node=self.node, verdict=self.verdict, suite=self.suite)
