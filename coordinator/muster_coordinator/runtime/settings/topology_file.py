"""The topology file with the operator's positions of nodes. They override what nodes report about themselves."""

from pathlib import Path

from muster.errors import SettingsError
from muster.model import Topology
from muster.text_file import read_text
from muster_coordinator.topology.slurm import parse_slurm
from muster_coordinator.topology.statements import places
from muster_coordinator.topology.topology_toml import parse_tables

_SLURM_SUFFIX = ".conf"
"""A file with this ending is Slurm's topology.conf; any other is TOML."""

_SHOWN = 20
"""Maximum number of problems in one message: a typing error in a range can cause thousands."""


def read_topology(path: Path | None) -> dict[str, Topology]:
    """The position of each node in the file at `path`; empty without a file. Raises SettingsError if it is wrong."""
    return {} if path is None else parse_topology(read_text(path, "topology_file"), path)


def parse_topology(text: str, path: Path) -> dict[str, Topology]:
    """The position of each node in the text of the file at `path`. Raises SettingsError if it is wrong."""
    statements, problems = (parse_slurm if path.suffix == _SLURM_SUFFIX else parse_tables)(text)
    found, disputes = places(statements)
    problems += disputes
    if not problems and not found:
        problems.append("places no node: name racks or leaves with their nodes, as in docs/how-to/topology.md")
    if problems:
        lines = [f"topology_file: {path}: {problem}" for problem in problems[:_SHOWN]]
        more = len(problems) - _SHOWN
        raise SettingsError("\n".join(lines + ([f"and {more} more problems"] if more > 0 else [])))
    return found
