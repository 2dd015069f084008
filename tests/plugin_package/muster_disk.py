"""A muster plugin that warns before the root file system is full."""

import shutil
from collections.abc import Mapping

from pydantic import Field

from muster import (
    Action,
    Check,
    Config,
    Context,
    Finding,
    Measurement,
    Params,
    Reference,
    Scope,
    hookimpl,
    judge_value,
)

ENOUGH = Reference(
    check="disk",
    metric="free_share",
    warn_below=0.1,
    fail_below=0.02,
    source="below a tenth, ext4 starts to fragment; at 2 % logs and containers stop",
)


class DiskParams(Params):
    """What to look at."""

    path: str = Field("/", description="A path on the file system to look at")


def measure(params: DiskParams, context: Context) -> Measurement:
    """Free bytes as a share of all bytes, between 0 and 1."""
    usage = shutil.disk_usage(params.path)
    return Measurement(metrics={"free_share": usage.free / usage.total})


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Holds the free share against the operator's reference, or else against our own."""
    share = measurement.metrics["free_share"]
    assert not isinstance(share, list)
    return judge_value(share, references.get("free_share"), code="disk.full", action=Action.CHECK_APPLICATION)


DISK = Check(
    name="disk",
    summary="Free space on a file system",
    scope=Scope.NODE,
    params=DiskParams,
    measure=measure,
    judge=judge,
    timeout_s=10,
    cadence_s=600,
    judged=("free_share",),
    references=(ENOUGH,),
    finds={"disk.full": "the file system has little free space left"},
)


@hookimpl
def muster_checks(config: Config) -> list[Check[DiskParams]]:
    return [DISK]
