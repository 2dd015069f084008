"""The check `dcgm`: NVIDIA's own diagnostic, run by the host engine of DCGM and read from `dcgmi diag -j`."""

from collections.abc import Mapping
from functools import partial

from pydantic import Field

from muster import Check, Config, Context, Finding, Measurement, Needs, Params, Reference, Scope, Section, hookimpl

NAME = "dcgm"

FINDS = {
    "dcgm.failed": "a test failed; problems of configuration or monitoring, as DCGM classifies them, are warnings",
    "dcgm.warned": "a test warned, or passed but reported a problem",
    "dcgm.skipped": "DCGM skipped tests, for example because they do not support the GPU model",
    "dcgm.not_run": "tests did not finish",
    "dcgm.runtime_error": "the diagnostic stopped early",
    "dcgm.nothing_tested": "the diagnostic ran no test",
    "dcgm.no_hostengine": "nv-hostengine does not answer, so nothing was tested",
    "dcgm.garbage": "dcgmi's report cannot be read",
    "dcgm.not_started": "dcgmi could not be started",
    "dcgm.timed_out": "dcgmi did not finish before its deadline",
}

DEADLINES_S = {1: 300.0, 2: 1800.0, 3: 3600.0, 4: 10_800.0}
"""By level. NVIDIA documents seconds, 2 minutes, 15 minutes and up to 2 hours; AWS's node checks wait 30, 60 and 180
minutes for the last three."""


class DcgmSettings(Section):
    """The table `[plugins.dcgm]`."""

    dcgmi: str = Field("dcgmi", description="The dcgmi executable: a path, or a name to find in PATH")


class DcgmParams(Params):
    """How thorough the diagnostic is."""

    level: int = Field(1, ge=1, le=4, description="1: seconds, software only; 2: minutes; 3: half an hour; 4: hours")


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, DcgmSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[DcgmParams]]:
    return [
        Check(
            name=NAME,
            summary="NVIDIA's diagnostic of the GPUs, their memory, links and software, if DCGM is installed",
            scope=Scope.NODE,
            params=DcgmParams,
            measure=partial(_measure, config.plugin(NAME, DcgmSettings)),
            judge=_judge,
            timeout_s=max(DEADLINES_S.values()) * 1.1,  # later than the deadline of any level
            needs=Needs.IDLE_NODE,
            finds=FINDS,
            cost_s=10.0,
            precedent="DCGM diag levels 1 to 4; run by NVSentinel and Meta's gcm too",
        )
    ]


def _measure(settings: DcgmSettings, params: DcgmParams, context: Context) -> Measurement:
    from muster_plugins.checks.dcgm.diagnosis import measure  # noqa: PLC0415 (memory that only a run should spend)

    return measure(settings, params, context)


def _judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    from muster_plugins.checks.dcgm.diagnosis import judge  # noqa: PLC0415 (memory that only a run should spend)

    return judge(measurement, references)
