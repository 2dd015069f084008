"""The run of the pseudo check `plugins`: what became of loading the plugins."""

from collections.abc import Iterable

from muster.check import PLUGINS_LOADED
from muster.model import Finding, Run, Severity, verdict_of
from muster.wire.messages import PluginInfo, new_id


def plugins_run(node: str, failed: Iterable[PluginInfo], now: float) -> Run:
    """A finding for each plugin that failed. Reported when none did as well: that clears what was found before."""
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
