"""Stores reports where plugins keep documents, such as a bucket, without a coordinator.

It calls the hook with which the coordinator stores documents. A store that was away for seconds is tried again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from muster.acceptance import AcceptanceReport
from muster.artifact import Artifact
from muster.errors import Refused, Unavailable
from muster.model import format_instant
from muster.plugins import HookAnswer, Plugins
from muster.transition import ActionOutcome, Effect
from muster_agent.acceptance.files import forms
from muster_agent.acceptance.retries import pauses_s
from muster_agent.acceptance.terminal import report_text

HOOK = "muster_artifacts"

TIMEOUT_S = 60.0

ACCESS = Artifact(key="acceptances/access.txt", content="muster may write here\n")
"""Stored before the runs begin: otherwise a wrong bucket or credential would show after hours."""


def documents(report: AcceptanceReport) -> tuple[Artifact, ...]:
    """The report in all forms, and the tables of nccl-tests if there are any, below a name of its own.

    The name is from the time of the start and the first node: that node runs one acceptance at a time.
    """
    day, _, time = format_instant(report.started_at).removesuffix("Z").partition("T")
    place = f"acceptances/{day}/{time.replace(':', '')}-{report.nodes[0].name}"
    contents = {f"report.{ending}": content for ending, content in forms(report).items()}
    contents["report.txt"] = report_text(report)
    if tables := "\n".join(_tables(report)):
        contents["nccl-tests.txt"] = tables
    return tuple(Artifact(key=f"{place}/{name}", content=content) for name, content in contents.items())


def _tables(report: AcceptanceReport) -> Iterator[str]:
    """The table of each step that has one. All nodes of a group have the same."""
    for step in report.steps:
        table = next((run.facts["table"] for run in step.runs if isinstance(run.facts.get("table"), str)), None)
        if table is not None:
            yield f"# {step.check}: {step.verdict}, nodes: {len(step.runs)}\n{table}\n"


async def store(
    plugins: Plugins, artifacts: tuple[Artifact, ...], pause: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> str:
    """Stores documents with every plugin that does and returns what the plugins say.

    Raises Refused if no plugin stores any, and Unavailable if one fails.
    """
    for pause_s in pauses_s():
        try:
            return await _store_once(plugins, artifacts)
        except Unavailable:
            await pause(pause_s)
    return await _store_once(plugins, artifacts)


async def _store_once(plugins: Plugins, artifacts: tuple[Artifact, ...]) -> str:
    answers = await plugins.call_each(HOOK, TIMEOUT_S, artifacts=artifacts)
    stores = {answer.plugin: _detail(answer) for answer in answers if answer.error or answer.value is not None}
    if not stores:
        raise Refused("--store: no plugin stores documents; set plugins.artifacts.url, such as s3://bucket/prefix")
    return "; ".join(f"{plugin}: {detail}" for plugin, detail in stores.items())


def _detail(answer: HookAnswer) -> str:
    outcome = answer.value
    if isinstance(outcome, ActionOutcome) and outcome.effect is not Effect.FAILED:
        return outcome.detail
    problem = answer.error or getattr(outcome, "detail", "gave no outcome")
    raise Unavailable(f"not stored: {answer.plugin}: {problem}")
