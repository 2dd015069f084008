"""Real excerpts of logs with an expert's judgement, as tests/corpus/README.md describes them."""

import hashlib
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from muster import Severity

HERE = Path(__file__).parent

_PREFIX = re.compile(
    r"""\s*
    (?:\d+,\d+,\d+,-;)?                      # /dev/kmsg
    (?:<(?P<level>\d)>)?                     # the level, as in pstore
    (?:[\d:+ -]+\ \|\ \w+\ \|\ )?             # lines of several files, by their time
    (?:kern\s*:\w+\s*:\s)?                   # dmesg --decode
    (?:(?:\S+:\ )?kern:\ +\w+:\ \[[^\]]*\]:\ )?  # talosctl dmesg, with or without the node
    (?:\d{4}-\d\d-\d\dT[\d:.,+Z-]+\s)?       # a time as in ISO 8601
    (?:(?:\w+\ +\d+\ )?\d\d:\d\d:\d\d(?:\.\d+)?\ +)?  # the time of syslog
    (?:(?:\S+\ )?kernel:\ (?::\ )?|\w+\ kern\ kernel\ +)?  # its host and program, or its level and facility
    (?:\[[^\]]*\d\ ?\]\s?){0,2}              # the time of dmesg, also with --ctime or --reltime, or both
    (?:\[\s*[TC]\d+\]\s+)?                   # the thread or CPU that speaks
    """,
    re.VERBOSE,
)
"""What programs write before the kernel's own text."""


class Line(NamedTuple):
    """What the kernel said, and at which of its levels if the source has that."""

    text: str
    level: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A piece of a real log. `worst` is the severity that the expert gives it, INFO also where nothing is to be found.

    `codes` are the findings of which one must have that severity; empty if any will do. `unjudgeable` is why the text
    alone does not suffice; such an excerpt counts as a disagreement.
    """

    name: str
    text: str
    source: str
    system: str
    worst: Severity
    why: str
    codes: tuple[str, ...] = ()
    unjudgeable: str = ""
    family: str

    @property
    def is_held_out(self) -> bool:
        """Whether this is in the half that rules were not made after; decided by the text."""
        return hashlib.sha256(self.text.encode()).digest()[0] % 2 == 1

    def lines(self) -> Iterator[Line]:
        """The kernel's own texts, without what programs wrote before them."""
        for line in filter(str.strip, self.text.splitlines()):
            prefix = _PREFIX.match(line)
            assert prefix  # all of its parts are optional
            yield Line(line[prefix.end() :], int(prefix["level"]) if prefix["level"] else None)


def excerpts(kind: str) -> Iterator[Excerpt]:
    """The excerpts in the files of the folder `kind`."""
    for path in sorted((HERE / kind).glob("*.toml")):
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["excerpt"]:
            row |= {"worst": Severity(row["worst"]), "codes": tuple(row.get("codes", ())), "family": path.stem}
            yield Excerpt(**row)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptExcerpt:
    """What a health script printed when it failed, and the line of it that an expert would show."""

    name: str
    text: str
    source: str
    summary: str


def script_excerpts() -> Iterator[ScriptExcerpt]:
    """The outputs in the folder `script`."""
    for path in sorted((HERE / "script").glob("*.toml")):
        yield from (ScriptExcerpt(**row) for row in tomllib.loads(path.read_text(encoding="utf-8"))["output"])
