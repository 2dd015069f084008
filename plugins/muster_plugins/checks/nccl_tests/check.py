"""The check `nccl_tests`: runs NVIDIA's own programs over the GPUs of this node and judges their results.

The programs come from the settings or from PATH. Parameters only choose one of the six that muster knows. One process
drives all GPUs (`-g`), so neither MPI nor a launcher is needed.
"""

from collections.abc import Mapping
from functools import partial

from pydantic import Field

from muster import Check, Config, Context, Finding, Measurement, Needs, Reference, Scope, Severity, hookimpl
from muster.home_path import HomePath
from muster.model import Json
from muster_plugins.shared.collectives.judgement import FINDS, JUDGED, judge_results
from muster_plugins.shared.collectives.params import CollectiveParams
from muster_plugins.shared.nccl.environment import NcclSettings

NAME = "nccl_tests"


class NcclTestsSettings(NcclSettings):
    """The table `[plugins.nccl_tests]`."""

    directory: HomePath | None = Field(None, description="Where all_reduce_perf and the others are; unset: on PATH")
    arguments: tuple[str, ...] = Field((), description="Additional arguments for the programs")
    json_report: bool = Field(False, description="true: read the JSON of -J, which versions since October 2025 support")


INCOMPLETE = "the program ended before it had checked its results"

_FINDS = {
    "failed": "the program ended with an error of its own",
    "not_started": "the program exists but could not be started",
    "timed_out": "the program did not finish before the deadline",
    "unreadable": "the output contains lines that are not those of nccl-tests, or no results",
    "incomplete": INCOMPLETE,
}


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Judges in the same way as `collective`."""
    return [*judge_results(NAME, measurement, references), *_judge_output(measurement.facts)]


def _judge_output(facts: Json) -> list[Finding]:
    """Findings about results that are not complete."""
    problems = facts.get("problems")
    return [
        Finding(
            code=f"{NAME}.{word}", summary=str(summary), severity=Severity.UNKNOWN, evidence={"output": facts["said"]}
        )
        for word, summary in (problems.items() if isinstance(problems, dict) else ())
    ]


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, NcclTestsSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[CollectiveParams]]:
    return [
        Check(
            name=NAME,
            summary="NVIDIA's own nccl-tests over the GPUs of this node, if they are installed",
            scope=Scope.NODE,
            params=CollectiveParams,
            measure=partial(_measure, config.plugin(NAME, NcclTestsSettings)),
            judge=judge,
            timeout_s=300.0,
            needs=Needs.IDLE_NODE,
            quick={"iterations": 3, "warmup": 1},
            judged=JUDGED,
            finds={f"{NAME}.{word}": meaning for word, meaning in (FINDS | _FINDS).items()},
            cost_s=20.0,
            precedent="nccl-tests, Azure node health checks",
        )
    ]


def _measure(settings: NcclTestsSettings, params: CollectiveParams, context: Context) -> Measurement:
    from muster_plugins.checks.nccl_tests.measure import measure  # noqa: PLC0415 (memory that only a run should spend)

    return measure(settings, params, context)
