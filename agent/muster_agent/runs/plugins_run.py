"""The run of the pseudo check `plugins`, which reports whether all plugins have loaded."""

from collections.abc import Iterable

from muster.check import PLUGINS_LOADED
from muster.model import Finding, Run, Severity, verdict_of
from muster.wire.messages import PluginInfo, new_id


def plugins_run(node: str, failed: Iterable[PluginInfo], now: float) -> Run:
    """A run with a finding for each plugin that failed. A run without findings clears the earlier ones."""
    findings = tuple(
        Finding(
            code="plugins.failed",
            summary=f"plugin {info.name} has failed: {info.error}",
            severity=Severity.UNKNOWN,
            evidence={"plugin": info.name, "distribution": info.distribution, "version": info.version},
        )
        for info in failed
    )
    return Run(
        id=new_id(),
        node=node,
        check=PLUGINS_LOADED,
        verdict=verdict_of(findings),
        findings=findings,
        started_at=now,
        duration_s=0.0,
        cause="start",
    )
