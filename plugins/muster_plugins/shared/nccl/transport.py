"""Finds the transports of NCCL's connections in the lines that it logs with NCCL_DEBUG=INFO.

A connection is logged as `Channel 00/0 : 3[3] -> 8[0] [send] via NET/IB/0/GDRDMA`, within a node as `via P2P/CUMEM` or
`via SHM/direct/direct`. Names here are the first part, with the network's name after NET: `P2P`, `SHM`, `NET/IB`,
`NET/gIB`, `NET/Socket`. `NVLS` stands for sums within NVSwitch, which NCCL announces in lines of their own.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

from pydantic import JsonValue

from muster import Finding, Severity
from muster.model import Json

Transport = str

FINDS = {
    "wrong_transport": "NCCL used another transport than expected: something else was measured",
    "transport_unknown": "NCCL does not report that it used the expected transport",
}
"""The meaning of the findings, by their code without the check's name."""

PATTERN = r"^(P2P|SHM|NVLS|NET|NET/[A-Za-z0-9_ ]+)$"
"""The transports that can be expected. NET alone means any network, also within a node."""

_CONNECTION = re.compile(r"NCCL INFO Channel .* via ([A-Za-z0-9]+)(?:/([A-Za-z_][\w ]*))?")

_NVLS = re.compile(r"NCCL INFO NVLS comm ")

_CHOICE = re.compile(
    r"NCCL (WARN .+|INFO (?:NET/|Using network|Bootstrap|Failed|(?!Channel).*(?:[Pp]lugin|libibverbs|libnccl)).+)"
)
"""What NCCL says about how it chose its networks, without the process that says so and without values of variables."""

_MOST_LINES = 1_000_000
"""More than a rank in a group of a thousand nodes logs."""

_LONGEST_LINE = 4096

_MOST_QUOTED, _LONGEST_QUOTED = 40, 240

_DIRECT = {"P2P": ("P2P", "NVLS")}
"""Sums within NVSwitch go over NVLink, like peer access."""


def logging_to(directory: Path) -> dict[str, str]:
    """The variables that make NCCL log its connections into files of this directory, one for each process."""
    return {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,NVLS",
        "NCCL_DEBUG_FILE": str(directory / "nccl.%h.%p.log"),
    }


def connections(directory: Path) -> Counter[Transport]:
    """The number of connections that this node's NCCL has logged below `directory`, by transport."""
    return count(_log(directory))


def count(lines: Iterable[str]) -> Counter[Transport]:
    """The number of connections in the lines by transport. Other lines and incomplete ones do not count."""
    seen: Counter[Transport] = Counter()
    for line in islice(lines, _MOST_LINES):
        if _NVLS.search(line):
            seen["NVLS"] += 1
        elif found := _CONNECTION.search(line):
            means, network = found[1], found[2]
            seen[f"NET/{network.strip()}" if means == "NET" and network else means] += 1
    return seen


def facts(expected: Transport | None, own: Counter[Transport], group: Iterable[Transport]) -> Json:
    """The facts to judge: the expected transport, this node's connections, and the transports used in the group.

    `fabric` is the network between the nodes, such as `gIB`; None if there is none or more than one.
    """
    networks = {used.removeprefix("NET/") for used in group if used.startswith("NET/")}
    return {
        "expected_transport": expected,
        "transports": dict(own),
        "group_transports": [*sorted(group)],
        "fabric": networks.pop() if len(networks) == 1 else None,
    }


def explanation(facts: Mapping[str, JsonValue], directory: Path) -> Json:
    """A fact with what NCCL logged about its choice of networks, if it did not use the expected transport."""
    if not judge_transport("", facts):
        return {}
    said: dict[str, None] = {}
    for line in islice(_log(directory), _MOST_LINES):
        if len(said) < _MOST_QUOTED and (found := _CHOICE.search(line)):
            said[found[1].rstrip()[:_LONGEST_QUOTED]] = None
    return {"nccl_log": [*said]}


def judge_transport(check: str, facts: Mapping[str, JsonValue]) -> list[Finding]:
    """Judges whether data took the expected transport, on this rank and in the group.

    An expected network is compared with networks, a transport within nodes with those within nodes.
    """
    expected, own, group = facts.get("expected_transport"), facts.get("transports"), facts.get("group_transports")
    if not isinstance(expected, str) or not _can_show(expected, facts):
        return []
    assert isinstance(own, dict) and isinstance(group, list)
    accepted = _DIRECT.get(expected, (expected,))
    others = sorted(used for used in own if _competes(used, expected) and not used.startswith(accepted))
    if others:
        summary = f"NCCL used {', '.join(others)} instead of {expected}: something else was measured"
        return [_finding(f"{check}.wrong_transport", summary, Severity.ERROR, facts)]
    if any(str(used).startswith(accepted) for used in group):
        return []
    summary = f"NCCL does not report that it used {expected}"
    return [_finding(f"{check}.transport_unknown", summary, Severity.UNKNOWN, facts)]


def _can_show(expected: Transport, facts: Mapping[str, JsonValue]) -> bool:
    """Whether the group can show it. A single rank cannot; a named network needs several nodes, the rest one node."""
    nodes, ranks = facts["nodes"], facts["world_size"]
    assert isinstance(nodes, int) and isinstance(ranks, int)
    if expected.startswith("NET"):
        return ranks > 1 if expected == "NET" else nodes > 1
    return ranks > nodes


def _competes(used: Transport, expected: Transport) -> bool:
    return expected == "NET" or used.startswith("NET") == expected.startswith("NET")


def _finding(code: str, summary: str, severity: Severity, facts: Mapping[str, JsonValue]) -> Finding:
    evidence = {name: facts[name] for name in ("expected_transport", "transports", "group_transports")}
    return Finding(code=code, summary=summary, severity=severity, evidence=evidence)


def _log(directory: Path) -> Iterator[str]:
    return chain.from_iterable(map(_lines, sorted(directory.glob("nccl.*.log"))))


def _lines(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8", errors="replace") as lines:
        while line := lines.readline(_LONGEST_LINE):
            yield line
