"""Reads nodes from the output of `scontrol --oneliner show nodes`.

This text has been the same since Slurm 22.05. The JSON output has another form in each version, comes from another
program, and is missing if Slurm was built without it.
"""

import re
from dataclasses import dataclass

_RECORD = re.compile(r"^(?=NodeName=)", re.MULTILINE)
_NEXT = "Comment|Extra|InstanceId|InstanceType|ReservationName"
_END = rf"(?= (?:{_NEXT})=|\s*\Z)"
NEXT_FIELD = re.compile(rf"\b({_NEXT})=")
WRITTEN_BY = re.compile(r"\[([^\s\]]+@[^\s\]]+)\]")
"""The end of a reason: the next field, or the writer of the reason and the time."""

_REASON = re.compile(rf" Reason=(?P<text>.*?)(?: \[(?P<by>[^\s\]]+@[^\s\]]+)\](?P<more_lines>.*?))?{_END}", re.DOTALL)
_COMMENT = re.compile(rf" Comment=(.*?){_END}", re.DOTALL)
_FLAG_MARKS = "*~#!%$@^-"
"""Older versions append these to a state, where newer versions have flags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """A node.

    `state` holds its state and all flags, such as IDLE and DRAIN. `reason_by` says who wrote the reason and when:
    `root@2026-03-01T09:30:00`.
    """

    name: str
    state: tuple[str, ...]
    reason: str = ""
    reason_by: str = ""
    comment: str = ""
    features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()

    @property
    def has_jobs(self) -> bool:
        """Whether jobs run here, or Slurm cleans up after them."""
        return not {"ALLOCATED", "MIXED", "COMPLETING"}.isdisjoint(self.state)


def read_nodes(text: str) -> list[SlurmNode]:
    """The nodes in the text; other lines are skipped."""
    return [_node(record) for record in _RECORD.split(text) if record.startswith("NodeName=") and " State=" in record]


def _node(record: str) -> SlurmNode:
    reason, comment = _REASON.search(record), _COMMENT.search(record)
    return SlurmNode(
        name=_word("NodeName", record),
        state=tuple(word.rstrip(_FLAG_MARKS) for word in _word("State", record).split("+")),
        reason=" ".join(f"{reason['text']} {reason['more_lines'] or ''}".split()) if reason else "",
        reason_by=(reason["by"] or "") if reason else "",
        comment=comment[1].strip() if comment else "",
        features=_listed("AvailableFeatures", record),
        partitions=_listed("Partitions", record),
    )


def _word(key: str, record: str) -> str:
    """The first value of this key. Texts of people come last and may contain the key again."""
    return f" {record}".partition(f" {key}=")[2].partition(" ")[0].strip()


def _listed(key: str, record: str) -> tuple[str, ...]:
    return tuple(word for word in _word(key, record).split(",") if word not in ("", "(null)"))
