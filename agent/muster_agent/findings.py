"""The findings `run.*`: what becomes of a run that gives no measurement. All are pure.

That a run broke says nothing about the hardware, so none of them is an ERROR.
"""

import os
import re
import signal
import traceback

from pydantic import TypeAdapter, ValidationError

from muster.model import Finding, Json, Severity
from muster_agent.process import Exit

_TRACEBACK_CHARACTERS = 4096
_SUMMARY_CHARACTERS = 500

KEPT_TEXT = 200
"""Characters of each code and summary that are kept of findings which are too large."""

_BROKEN = frozenset({"run.raised", "run.out_of_memory", "run.killed", "run.exited"})

_JSON = TypeAdapter[Json](Json)

_THROWN = re.compile(r"^terminate called after throwing an instance of '(.+)'(?:\n\s*what\(\):\s*(.*))?", re.MULTILINE)
"""What the C++ library writes when nothing catches an exception, before it aborts the process."""

_TERMINATED = re.compile(
    r"^terminate called (?:after throwing an instance of|recursively|without an active exception)", re.MULTILINE
)
"""As it begins, or all there is of it: when two threads throw at once, the second one aborts before the first has said
what it threw, or in the middle of its line (`__verbose_terminate_handler` of libstdc++, vterminate.cc)."""


def _unknown(code: str, summary: str, evidence: Json) -> Finding:
    return Finding(code=f"run.{code}", summary=summary, severity=Severity.UNKNOWN, evidence=evidence)


def skipped(reason: str) -> Finding:
    """The check says that there is nothing to measure here."""
    return Finding(code="run.skipped", summary=reason, severity=Severity.SKIPPED)


def preempted(reason: str) -> Finding:
    """The run was stopped because something else matters more."""
    return Finding(code="run.preempted", summary=f"stopped: {reason}", severity=Severity.SKIPPED)


def raised(error: BaseException) -> Finding:
    """The check raised an exception, MemoryError being a case of its own.

    An attribute `evidence` of the exception goes into the finding's, if it is a mapping of JSON.
    """
    text = "".join(traceback.format_exception(error))[-_TRACEBACK_CHARACTERS:]
    if isinstance(error, MemoryError):
        return _unknown("out_of_memory", "the run wanted more memory than it may take", {"traceback": text})
    first_line, *_ = [*str(error).splitlines(), ""]  # what follows may be a whole C++ stack; it is in the traceback
    evidence = {**_own_evidence(error), "traceback": text}
    return _unknown("raised", f"{type(error).__name__}: {first_line}"[:_SUMMARY_CHARACTERS], evidence)


def _own_evidence(error: BaseException) -> Json:
    try:
        return _JSON.validate_python(getattr(error, "evidence", {}))
    except ValidationError:
        return {}


def not_judged(metrics: list[str]) -> Finding:
    """There is no reference for what was measured, so that nothing says whether it is good."""
    return Finding(
        code="run.not_judged",
        summary=f"measured, but no reference judges it: {', '.join(metrics)}",
        severity=Severity.INFO,
        evidence={"metrics": [*metrics]},
    )


def unprepared(plugin: str, error: str) -> Finding:
    """A plugin could not set the run's environment up, so what was measured may not be what was meant."""
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
    """A process of the job is gone, or silent for longer than its run may take."""
    return _unknown("lost", f"the process with rank {rank} was lost during the run", {"rank": rank})


def hung(summary: str, evidence: Json) -> Finding:
    """The resident process does not answer."""
    return _unknown("hung", summary, evidence)


def garbage(error: Exception) -> Finding:
    """A child has broken the protocol; of a ValidationError the first thing that is wrong is told."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        detail = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    else:
        detail = str(error)
    return _unknown("garbage", f"the run's process broke the protocol: {detail}", {})


def ended_without_result(ending: Exit, *, memory_ran_out: bool, said: str = "") -> Finding:
    """A child is gone and nobody asked it to go; `said` is the end of what it wrote.

    A library whose thread throws, as those of gloo and NCCL do when a peer is gone or sends garbage, has raised: that
    it takes the process with it makes it no crash of this node's own.
    """
    evidence: Json = {"max_rss_bytes": ending.max_rss_bytes}
    if ending.status is None:
        return _unknown("exited", f"the run's process could not be started or watched: {ending.error}", evidence)
    code = os.waitstatus_to_exitcode(ending.status)
    if code >= 0:
        return _unknown("exited", f"the run's process exited with code {code} without a result", {"code": code})
    name = _signal_name(-code)
    if -code == signal.SIGABRT and _TERMINATED.search(said):
        return _unknown("raised", _thrown(said)[:_SUMMARY_CHARACTERS], {"signal": name, **evidence})
    if memory_ran_out and -code == signal.SIGKILL:
        return _unknown("out_of_memory", "the kernel killed the run for want of memory", evidence)
    return _unknown("killed", f"the run's process was killed by {name}", {"signal": name, **evidence})


def _thrown(said: str) -> str:
    """What a library has thrown, and its text, as far as it was written before the process was aborted."""
    if thrown := _THROWN.search(said):
        return f"{thrown[1]}: {thrown[2] or 'thrown in a thread of a library'}"
    return "a library terminated the process from a thread of its own"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def after_the_end(ending: Exit) -> list[Finding]:
    """What there is to say of any run that has ended: what it left behind and what cannot be killed."""
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
    """Processes outlived the run that started them; they have been killed."""
    return Finding(
        code="run.leftovers",
        summary=f"the run left {len(names)} process{'es' if len(names) != 1 else ''} behind",
        severity=Severity.INFO,
        evidence={"names": [*names]},
    )


def in_company(finding: Finding, met: Json) -> Finding:
    """The finding with whom the rank had met, if it tells what broke the run."""
    if finding.code not in _BROKEN:
        return finding
    return finding.model_copy(update={"evidence": {**finding.evidence, "met": met}})


def oversized(found: tuple[Finding, ...], size: int) -> tuple[Finding, ...]:
    """What is told of findings that are too large in `size` bytes of results: that they are, and how each begins."""
    summary = f"the run was too large to be reported ({size} bytes); only the start of its findings is kept"
    short = (
        finding.model_copy(
            update={"evidence": {}, "code": finding.code[:KEPT_TEXT], "summary": finding.summary[:KEPT_TEXT]}
        )
        for finding in found
    )
    return (_unknown("oversized", summary, {}), *short)


def with_tail(finding: Finding, tail: str) -> Finding:
    """The finding with the end of the run's output as evidence, if there was any."""
    return finding.model_copy(update={"evidence": {**finding.evidence, "output": tail}}) if tail else finding
