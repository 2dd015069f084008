"""Marks nodes in Slurm, and reads who keeps work off a node.

The reason shows that a drain is ours. `muster: XID 79 GPU3: … [ID]` takes a node out of service; ID is the
transition's id. The cause comes first because `sinfo -R` shows 20 characters. `muster:ID …` is the form of earlier
versions. `muster-test: …` keeps work off a node during a test.

Slurm 22.05 forgets the reason when the node is resumed. Then a resume by hand would look like a drain that never
happened. Therefore `[muster:ID]` is also in the node's comment, after the text of people. Slurm 24.11 keeps the reason,
so the reason of a node that gets work says nothing about the present.

Slurm appends later events of the node to a reason: `muster: … [1-7] : reboot issued`. The drain remains ours.

Slurm has no conditional change. A change by somebody else in the milliseconds between our read and our write is lost;
the mark in the comment remains.
"""

import re
from enum import StrEnum

from muster import Transition, cause_text
from muster.model import ServiceState
from muster_plugins.schedulers.slurm.nodes import NEXT_FIELD, WRITTEN_BY, SlurmNode

_ID = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_QUARANTINE = re.compile(r"muster: .* \[[a-z]?\d+-\d+\]$")
_QUARANTINE_BEFORE = re.compile(rf"muster:{_ID}( |$)")
"""The form of earlier versions. Such a drain is ours, too; the next transition rewrites it."""

_ENDING_ID = re.compile(r" \[[a-z]?\d+-\d+\]$")
_TEST = re.compile(r"muster-test: ")
_MARK = re.compile(rf"\s*\[muster:({_ID})\]")
_NO_WORK = ("DOWN", "DRAIN", "FAIL", "ERROR")
_PASSING = ("Not responding", "Node unexpectedly rebooted", "reboot issued")
"""The texts that slurmctld writes as a reason, or appends, while the node may return by itself (ReturnToService).

It also appends others, such as `Kill task failed`, which need a person.
"""

_APPENDED = re.compile(rf"( : ({'|'.join(_PASSING)}))+$")

_BEFORE = "; before: "
"""Separates our part of a reason from the text of others, which muster only preserves for people."""

_MOST_BYTES = 250
"""Maximum length of a reason. The accounting database keeps 255 characters."""


class SlurmHold(StrEnum):
    """What keeps a node from work.

    NOTHING: nothing does. QUARANTINE: our drain, until it is back in service. TEST: our drain during a test. ABSENCE:
    Slurm has not heard from the node, and may bring it back at any time. OTHERS: a person, or Slurm until a person
    acts.
    """

    NOTHING = "NOTHING"
    QUARANTINE = "QUARANTINE"
    TEST = "TEST"
    ABSENCE = "ABSENCE"
    OTHERS = "OTHERS"


def hold(node: SlurmNode) -> SlurmHold:
    """What keeps the node from work."""
    stops = [flag for flag in _NO_WORK if flag in node.state]
    written = _written(node)
    ours, is_passing = _our_hold(written), node.reason in _PASSING or node.reason != written
    if not stops:
        return SlurmHold.NOTHING
    if "DRAIN" in stops and "FAIL" not in stops and ours:
        return ours
    if stops == ["DOWN"] and (ours or is_passing):
        return SlurmHold.ABSENCE
    return SlurmHold.OTHERS


def _written(node: SlurmNode) -> str:
    """The reason without what Slurm appended. Example: `bad fan` for `bad fan : Not responding`."""
    return _APPENDED.sub("", node.reason)


def _our_hold(reason: str) -> SlurmHold | None:
    if _QUARANTINE.match(reason) or _QUARANTINE_BEFORE.match(reason):
        return SlurmHold.QUARANTINE
    return SlurmHold.TEST if _TEST.match(reason) else None


def describe(node: SlurmNode) -> str:
    """The state, the reason, and who wrote the reason and when, if Slurm knows."""
    reason = node.reason or "no reason given"
    return f"{'+'.join(node.state)}: {reason}" + (f" ({node.reason_by})" if node.reason_by else "")


def quarantine_reason(transition: Transition, node: SlurmNode) -> str:
    """The reason of a drain for this transition: the cause first, the transition's id last, which is never cut."""
    return _reason(f"muster: {_why(transition)}", node, ending=f" [{transition.id}]")


def _why(transition: Transition) -> str:
    """The causes; without any, a description of the transition itself."""
    if transition.causes:
        return cause_text(transition)
    retest = "retest: " if transition.after is ServiceState.PROBATION else ""
    codes = f"{', '.join(transition.codes)}: " if transition.codes else ""
    return f"{retest}{codes}{transition.reason}"


def restored_reason(id: str, node: SlurmNode) -> str:
    """The reason of a drain for the transition with that id, if nothing more is known of it."""
    return _reason("muster: drained while it was tested", node, ending=f" [{id}]")


def testing_reason(why: str, node: SlurmNode) -> str:
    """The reason of a drain while the node is tested."""
    return _reason(f"muster-test: {why}", node)


def marked(node: SlurmNode) -> str | None:
    """The id in the node's comment: of the transition for which we drained it, even if it has been resumed since."""
    found = _MARK.search(node.comment)
    return found[1] if found else None


def with_mark(comment: str, id: str) -> str:
    """The comment with this id in place of any other id of ours."""
    return f"{without_mark(comment)} [muster:{id}]".lstrip()


def without_mark(comment: str) -> str:
    """The text that others wrote."""
    return _MARK.sub("", comment)


def _reason(text: str, node: SlurmNode, *, ending: str = "") -> str:
    """One line of at most the allowed length, with what others wrote at its end; if too long, each gets half."""
    most, note = _MOST_BYTES - len(ending.encode()), _note(node)
    others = _one_line(f"{_BEFORE}{note}") if note else ""
    ours = _cut(_one_line(text), most - min(len(others.encode()), most // 2))
    return ours + _cut(others, most - len(ours.encode())) + ending


def _note(node: SlurmNode) -> str:
    """Why somebody asked for a reboot of the node, which Slurm keeps in the reason; ours may have it since.

    Without a planned reboot, the reason of others may be years old: Slurm 24.11 never forgets it.
    """
    if "REBOOT_REQUESTED" not in node.state:
        return ""
    reason = _written(node)
    if _our_hold(reason):
        ours = _ENDING_ID.sub("", reason) if _QUARANTINE.match(reason) else reason
        return ours.partition(_BEFORE)[2]
    return reason if hold(node) is SlurmHold.NOTHING else ""


def _one_line(text: str) -> str:
    """The text in one line, without the characters that end a reason in Slurm's output.

    Slurm prints ` Reason=text [who@when] Comment=…`. The text of a finding comes from a node and can contain anything.
    If such an end were in its middle, our drain would be read as somebody else's.
    """
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return NEXT_FIELD.sub(r"\1:", WRITTEN_BY.sub(r"(\1)", line))


def _cut(line: str, most_bytes: int) -> str:
    return line.encode()[:most_bytes].decode(errors="ignore")
