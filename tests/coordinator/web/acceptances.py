"""Acceptance reports that tests send."""

from muster.acceptance import AcceptanceReport, report, step_report
from muster.model import Action, Device, Finding, Inventory, Run, Severity, verdict_of

STARTED_AT = 1_700_000_000.0
LOST = Finding(
    code="nvml.xid",
    summary="GPU has fallen off the bus",
    severity=Severity.ERROR,
    device=3,
    action=Action.REBOOT_NODE,
    evidence={"xid": 79},
)


def run_of(node: str, check: str, *findings: Finding, **fields) -> Run:
    return Run(
        id=f"{check}-{node}",
        node=node,
        check=check,
        verdict=verdict_of(findings),
        findings=findings,
        started_at=STARTED_AT,
        duration_s=2.5,
        **{"metrics": {"tflops": [600.0, 598.5, 601.0, 597.0]}, **fields},
    )


def acceptance(
    *nodes: str, suite="full", failed=(), gpus=4, finding=LOST, started_at=STARTED_AT, **fields
) -> AcceptanceReport:
    """The report of a suite with two steps on these nodes, of which the failed ones have lost a GPU.

    The fields are those of the runs of the second step.
    """
    devices = tuple(Device(index=index, uuid=f"GPU-{index}", model="NVIDIA H100") for index in range(gpus))
    inventories = {node: Inventory(devices=devices, machine_type="a3", software={"driver": "570.1"}) for node in nodes}
    errors = [run_of(node, "nvml", *[finding] * (node in failed)) for node in nodes]
    steps = [
        step_report("ENV", "nvml", "Errors of the GPUs", errors),
        step_report("COMPUTE", "gemm", "Speed of the GPUs", [run_of(node, "gemm", **fields) for node in nodes]),
    ]
    return report(suite, steps, inventories, started_at, 61.5)


def sent(report: AcceptanceReport, by: str | None = "job 17") -> dict:
    """The body with which the report is sent."""
    return {"by": by, "report": report.model_dump(mode="json")}


def changed(report: AcceptanceReport, *place, to) -> dict:
    """The body with a report in which one value is another."""
    body = sent(report)
    *path, last = place
    at = body["report"]
    for step in path:
        at = at[step]
    at[last] = to
    return body
