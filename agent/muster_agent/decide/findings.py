"""The findings `run.*` about runs that gave no measurement, or only a part of it.

A broken run says nothing about the hardware, so none of these findings is an ERROR.
"""

import os
import re
import signal
import traceback

from pydantic import TypeAdapter, ValidationError

from muster.conditions import in_words
from muster.extras import missing_package
from muster.machine_type import SET_IT
from muster.model import Finding, Json, Severity
from muster.references import MACHINE_TYPE, Reference
from muster_agent.decide.orders import ChildExit

_TRACEBACK_CHARACTERS = 4096
_SUMMARY_CHARACTERS = 500

KEPT_CHARACTERS = 200
"""Characters of code and summary that a finding keeps if the results are too large to send."""

_BROKEN = frozenset({"run.raised", "run.out_of_memory", "run.killed", "run.exited"})
"""Codes of findings that say why a rank ended without a result."""

_JSON = TypeAdapter[Json](Json)

_THROWN = re.compile(r"^terminate called after throwing an instance of '(.+)'(?:\n\s*what\(\):\s*(.*))?", re.MULTILINE)
"""What the C++ runtime prints about an uncaught exception before it aborts the process."""

_TERMINATED = re.compile(
    r"^terminate called (?:after throwing an instance of|recursively|without an active exception)", re.MULTILINE
)
"""The start of that line, or all of it. When two threads throw at once, the second one aborts the process before or
while the first one prints what it has thrown (`__verbose_terminate_handler` of libstdc++, vterminate.cc)."""


def _unknown(code: str, summary: str, evidence: Json) -> Finding:
    return Finding(code=f"run.{code}", summary=summary, severity=Severity.UNKNOWN, evidence=evidence)


def skipped(reason: str) -> Finding:
    """The check has nothing to measure on this node."""
    return Finding(code="run.skipped", summary=reason, severity=Severity.SKIPPED)


def preempted(reason: str) -> Finding:
    """The run was stopped in favour of more important work."""
    return Finding(code="run.preempted", summary=f"stopped: {reason}", severity=Severity.SKIPPED)


def raised(error: BaseException) -> Finding:
    """The check raised an exception; a MemoryError is `run.out_of_memory`.

    The exception's attribute `evidence` becomes part of the finding's evidence, if it is a mapping of JSON.
    """
    text = "".join(traceback.format_exception(error))[-_TRACEBACK_CHARACTERS:]
    if isinstance(error, MemoryError):
        return _unknown("out_of_memory", "the run wanted more memory than it may take", {"traceback": text})
    first_line, *_ = [*str(error).splitlines(), ""]  # the rest may be a whole C++ stack; it is in the traceback
    evidence = {**_own_evidence(error), "traceback": text}
    summary = missing_package(error) or f"{type(error).__name__}: {first_line}"
    return _unknown("raised", summary[:_SUMMARY_CHARACTERS], evidence)


def _own_evidence(error: BaseException) -> Json:
    try:
        return _JSON.validate_python(getattr(error, "evidence", {}))
    except ValidationError:
        return {}


def not_judged(metrics: list[str], waiting: list[Reference]) -> Finding:
    """No reference applies to `metrics`, which the check wants to judge, or references wait for the machine type."""
    without = f"measured, but no reference applies to: {', '.join(metrics)}" if metrics else ""
    types = [*dict.fromkeys(in_words(row.when[MACHINE_TYPE]) for row in waiting)]
    missing = f"the machine type is unknown, and references wait for it ({', '.join(types)}): {SET_IT}" if types else ""
    return Finding(
        code="run.not_judged",
        summary="; ".join(filter(None, (without, missing))),
        severity=Severity.INFO,
        evidence={"metrics": [*metrics], **({"waiting": [row.metric for row in waiting]} if waiting else {})},
    )


def unprepared(plugin: str, error: str) -> Finding:
    """A plugin could not set up the run's environment, so the run may have measured something else."""
    return Finding(
        code="plugins.failed",
        summary=f"plugin {plugin} could not prepare the run: {error}",
        severity=Severity.UNKNOWN,
        evidence={"plugin": plugin, "error": error},
    )


def timeout(timeout_s: float) -> Finding:
    """The run did not end by its deadline."""
    return _unknown("timeout", f"not done within {timeout_s:g} s", {"timeout_s": timeout_s})


def lost(rank: int) -> Finding:
    """A process of the job is gone, or was silent for longer than its run may take."""
    return _unknown("lost", f"the process with rank {rank} was lost during the run", {"rank": rank})


def hung(summary: str, evidence: Json) -> Finding:
    """The resident process does not answer."""
    return _unknown("hung", summary, evidence)


def garbage(error: Exception) -> Finding:
    """A child sent something that breaks the protocol. The finding shows the first error of a ValidationError."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        detail = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    else:
        detail = str(error)
    return _unknown("garbage", f"the run's process broke the protocol: {detail}", {})


def ended_without_result(ending: ChildExit, *, memory_ran_out: bool, output: str = "") -> Finding:
    """A child ended without a result; `output` is the end of what it wrote.

    If a library's thread aborted the process with an exception, the code is `run.raised` and not `run.killed`: gloo and
    NCCL do so when a peer leaves or sends garbage, and then this node has not crashed.
    """
    evidence: Json = {"max_rss_bytes": ending.max_rss_bytes}
    if ending.status is None:
        return _unknown("exited", f"the run's process could not be started or watched: {ending.error}", evidence)
    code = os.waitstatus_to_exitcode(ending.status)
    if code >= 0:
        return _unknown("exited", f"the run's process exited with code {code} without a result", {"code": code})
    name = _signal_name(-code)
    if -code == signal.SIGABRT and _TERMINATED.search(output):
        return _unknown("raised", _thrown(output)[:_SUMMARY_CHARACTERS], {"signal": name, **evidence})
    if memory_ran_out and -code == signal.SIGKILL:
        return _unknown("out_of_memory", "the kernel killed the run because memory ran out", evidence)
    return _unknown("killed", f"the run's process was killed by {name}", {"signal": name, **evidence})


def _thrown(output: str) -> str:
    """The exception of the library and its text, if the process printed them before it was aborted."""
    if thrown := _THROWN.search(output):
        return f"{thrown[1]}: {thrown[2] or 'thrown in a thread of a library'}"
    return "a library terminated the process from a thread of its own"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def after_the_end(ending: ChildExit) -> list[Finding]:
    """Findings about any run that has ended: processes left behind, and processes that cannot be killed."""
    found = []
    if ending.left:
        found.append(leftovers([*ending.left.values()]))
    if ending.stuck:
        pids = ", ".join(str(pid) for pid in ending.stuck)
        found.append(
            _unknown("unkillable", f"processes do not die when killed: {pids}", {"pids": [*ending.stuck]}),
        )
    return found


def leftovers(names: list[str]) -> Finding:
    """Processes outlived the run that started them, and were killed."""
    return Finding(
        code="run.leftovers",
        summary=f"the run left {len(names)} process{'es' if len(names) != 1 else ''} behind",
        severity=Severity.INFO,
        evidence={"names": [*names]},
    )


def with_peers_met(finding: Finding, met: Json) -> Finding:
    """Adds the group that the rank had met to the evidence, if the finding says why the rank ended."""
    if finding.code not in _BROKEN:
        return finding
    return finding.model_copy(update={"evidence": {**finding.evidence, "met": met}})


def shorten(found: tuple[Finding, ...], size: int) -> tuple[Finding, ...]:
    """Cuts findings whose results, of `size` bytes, are too large to send, and adds a finding `run.oversized`."""
    summary = f"the run was too large to report ({size} bytes); only the start of its findings is kept"
    short = (
        finding.model_copy(
            update={
                "evidence": {},
                "code": finding.code[:KEPT_CHARACTERS],
                "summary": finding.summary[:KEPT_CHARACTERS],
            }
        )
        for finding in found
    )
    return (_unknown("oversized", summary, {}), *short)


def with_tail(finding: Finding, tail: str) -> Finding:
    """Adds the end of the run's output to the evidence, if there was any output."""
    return finding.model_copy(update={"evidence": {**finding.evidence, "output": tail}}) if tail else finding
