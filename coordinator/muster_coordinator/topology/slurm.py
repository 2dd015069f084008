"""Reads Slurm's topology.conf (https://slurm.schedmd.com/topology.conf.html), in its tree and its block form.

A switch with nodes is their leaf. The switch above it is their block; of several, the first in the file. Higher
switches have no level here. A BlockName is a block.
"""

import graphlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.errors import unknown
from muster.model import Topology
from muster_coordinator.topology.statements import Statement, names_in

_KEYS = {key.lower(): key for key in ("SwitchName", "BlockName", "Nodes", "Switches", "LinkSpeed", "BlockSizes")}
"""Slurm ignores the case of keys."""


@dataclass(frozen=True, slots=True)
class _Switch:
    """A switch, or a block if `is_block`, with the names below it."""

    name: str
    line: int
    is_block: bool
    nodes: Sequence[str]
    switches: Sequence[str]


def parse_slurm(text: str) -> tuple[list[Statement], list[str]]:
    """The statements of the file about nodes, and its problems, one line each."""
    switches: list[_Switch] = []
    problems: list[str] = []
    for number, line in _lines(text):
        try:
            values = _values(line)
            if values.keys() - {"BlockSizes", "LinkSpeed"}:
                switches.append(_switch(values, number))
        except ValueError as error:
            problems.append(f"line {number}: {error}")
    above: dict[str, str] = {}
    for switch in switches:
        for child in switch.switches:
            above.setdefault(child, switch.name)
    statements = [_statement(switch, above.get(switch.name)) for switch in switches]
    return statements, [*problems, *_twice(switches), *_undefined(switches), *_cycle(switches)]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with content and the number at which it begins. A backslash at the end continues a line."""
    begun, said = 0, ""
    for number, line in enumerate((*text.splitlines(), ""), 1):
        begun = begun or number
        said += line.partition("#")[0].rstrip()
        if said.endswith("\\"):
            said = said[:-1]
            continue
        if said:
            yield begun, said
        begun, said = 0, ""


def _values(line: str) -> dict[str, str]:
    """The values of a line, by key as Slurm spells it."""
    values: dict[str, str] = {}
    for word in shlex.split(line):
        said, equals, value = word.partition("=")
        key = _KEYS.get(said.lower())
        if not equals:
            raise ValueError(f"{word!r} is not Key=value, for example SwitchName=leaf1 Nodes=node-[01-16]")
        if key is None:
            raise ValueError(unknown("key", said, _KEYS.values()))
        if key in values:
            raise ValueError(f"{key} is given twice")
        values[key] = value
    return values


def _switch(values: Mapping[str, str], line: int) -> _Switch:
    if ("SwitchName" in values) is ("BlockName" in values):
        raise ValueError("must name one switch or one block: begin it with SwitchName= or BlockName=")
    is_block = "BlockName" in values
    (name, *others) = names_in(values["BlockName" if is_block else "SwitchName"])
    if others:
        raise ValueError(f"names {1 + len(others)} switches at once: give each a line of its own")
    nodes, switches = (names_in(values[key]) if key in values else () for key in ("Nodes", "Switches"))
    if is_block and switches:
        raise ValueError(f"block {name} has Switches, but a block has Nodes only")
    if not nodes and not switches:
        raise ValueError(f"{name} has nothing below it: give Nodes={'' if is_block else ' or Switches='}")
    return _Switch(name, line, is_block, nodes, switches)


def _statement(switch: _Switch, above: str | None) -> Statement:
    where = Topology(block=switch.name) if switch.is_block else Topology(block=above, leaf=switch.name)
    return Statement(f"line {switch.line}", switch.nodes, where)


def _twice(switches: Sequence[_Switch]) -> Iterator[str]:
    first: dict[str, int] = {}
    for switch in switches:
        line = first.setdefault(switch.name, switch.line)
        if line != switch.line:
            yield f"line {switch.line}: {switch.name} is defined in line {line} already: give each another name"


def _undefined(switches: Sequence[_Switch]) -> Iterator[str]:
    defined = {switch.name for switch in switches if not switch.is_block}
    for switch in switches:
        for child in switch.switches:
            if child not in defined:
                yield f"line {switch.line}: {unknown('switch', child, defined)}: give it a line SwitchName={child}"


def _cycle(switches: Sequence[_Switch]) -> Iterator[str]:
    """The first cycle, if there is one: a switch cannot be below itself."""
    try:
        graphlib.TopologicalSorter({switch.name: switch.switches for switch in switches}).prepare()
    except graphlib.CycleError as error:
        names = [*reversed(error.args[1])]
        line = next(switch.line for switch in switches if switch.name == names[0])
        yield f"line {line}: {names[0]} is below itself: {' above '.join(names)}"
