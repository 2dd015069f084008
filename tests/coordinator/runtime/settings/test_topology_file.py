"""Where a topology file places nodes, and how a wrong one is refused."""

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.errors import SettingsError
from muster.model import Topology
from muster_coordinator.runtime.settings.topology_file import parse_topology, read_topology

GUIDE = Path(__file__).parents[4] / "docs" / "how-to" / "topology.md"

TOML = """
[[leaf]]
name = "leaf-1"
rack = "r1"
block = "b1"
nodes = ["node-[001-003]", "login"]

[[leaf]]
name = "leaf-2"
nodes = ["node-004"]

[[rack]]
name = "r2"
nodes = ["node-[004-005]"]

[[host]]
name = "h7"
nodes = ["node-005"]
"""

# From Slurm's own documentation: the tree of its topology guide, and the block form of its manual.
TREE = """
# topology.conf
# Switch Configuration
SwitchName=s0 Nodes=tux[0-3]   LinkSpeed=900
SwitchName=s1 Nodes=tux[4-7]   LinkSpeed=900
SwitchName=s4 Switches=s[0-1]  LinkSpeed=1800
SwitchName=s5 Switches=s[0-1]  LinkSpeed=1800
"""
BLOCKS = """
BlockName=block1 Nodes=node[1-32]
BlockName=block2 Nodes=node[33-64]
BlockSizes=30,120
"""


def test_tables_say_where_nodes_stand():
    """Each at its own level and, for all its nodes, at others; of several tables together."""
    found = parse_topology(TOML, Path("topology.toml"))
    first = Topology(block="b1", rack="r1", leaf="leaf-1")
    assert found == {
        **dict.fromkeys(("node-001", "node-002", "node-003", "login"), first),
        "node-004": Topology(rack="r2", leaf="leaf-2"),
        "node-005": Topology(rack="r2", host="h7"),
    }


def test_switches_of_slurm_are_leaves_below_blocks():
    """Of several switches above a leaf the first is its block, so that leaves below the same ones share it."""
    found = parse_topology(TREE, Path("topology.conf"))
    assert len(found) == 8
    assert found["tux3"] == Topology(leaf="s0", block="s4")
    assert found["tux4"] == Topology(leaf="s1", block="s4")


def test_blocks_of_slurm_are_blocks():
    """Without switches nobody says which leaf."""
    found = parse_topology(BLOCKS, Path("topology.conf"))
    assert (found["node32"], found["node33"]) == (Topology(block="block1"), Topology(block="block2"))


@pytest.mark.parametrize(
    "text",
    [
        "switchname=s0 NODES=a,b",
        "SwitchName=s0 \\\n  Nodes=a,b",
        'SwitchName="s0" Nodes="a,b"  # a comment',
        "\n\nSwitchName=s0 Nodes=a,b\\",
    ],
)
def test_slurm_is_read_as_slurm_reads_it(text):
    """Without regard to case, over continued lines, with quotes and comments."""
    assert parse_topology(text, Path("topology.conf")) == dict.fromkeys("ab", Topology(leaf="s0"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "places no node: name racks or leaves with their nodes"),
        ("# nothing", "places no node"),
        ("BlockSizes=8", "places no node"),
        ("SwitchName=a Nodes=n\nInclude more.conf", "line 2: 'Include' is not Key=value, for example SwitchName="),
        ("SwitchName=a Nodez=n", "line 1: unknown key 'Nodez'; did you mean 'Nodes'?"),
        ("SwitchName=a Nodes=n Nodes=m", "line 1: Nodes is given twice"),
        ("SwitchName=a", "line 1: a has nothing below it: give Nodes= or Switches="),
        ("BlockName=a", "line 1: a has nothing below it: give Nodes="),
        ("BlockName=a Nodes=n Switches=s", "line 1: block a has Switches, but a block has Nodes only"),
        ("Nodes=n", "line 1: must name one switch or one block"),
        ("SwitchName=a BlockName=b Nodes=n", "line 1: must name one switch or one block"),
        ("SwitchName=s[1-2] Nodes=n", "line 1: names 2 switches at once"),
        ("SwitchName=a Nodes='n", "line 1: No closing quotation"),
        ("SwitchName=a Nodes=n[1-", "line 1: 'n[1-' is neither a name nor names with ranges"),
        ("SwitchName=a Nodes=n;m", "line 1: 'n;m' is not a name"),
        ("SwitchName=a Nodes=n\nSwitchName=a Nodes=m", "line 2: a is defined in line 1 already"),
        ("SwitchName=a Nodes=n\nSwitchName=b Switches=a,c", "line 2: unknown switch 'c'"),
        ("SwitchName=a Switches=a", "line 1: a is below itself: a above a"),
        (
            "SwitchName=a Nodes=n\nSwitchName=b Switches=a,c\nSwitchName=c Switches=d\nSwitchName=d Switches=b",
            "is below itself: b above c above d above b",
        ),
        (
            "SwitchName=a Nodes=n[1-8]\nSwitchName=b Nodes=n[5-9]",
            "line 2: 4 nodes (n5 to n8) in leaf b here, in leaf a by line 1: a node has one leaf",
        ),
        ("BlockName=a Nodes=n\nBlockName=b Nodes=n", "line 2: node n in block b here, in block a by line 1"),
    ],
)
def test_a_wrong_file_of_slurm_is_refused(text, reason):
    """With the file, the line, what is wrong and what would be right."""
    with pytest.raises(SettingsError) as refused:
        parse_topology(text, Path("/etc/slurm/topology.conf"))
    assert reason in str(refused.value)
    assert str(refused.value).startswith("topology_file: /etc/slurm/topology.conf: ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "places no node"),
        ("leaf = []", "places no node"),
        ("[[leaf]", "not TOML: "),
        ("racks = 1", "unknown table 'racks'; did you mean 'rack'? (valid: block, host, leaf, rack)"),
        ("leaf = 3", "[[leaf]] number 1: must be a table"),
        ('[[leaf]]\nnodes = ["n"]', "[[leaf]] number 1: field 'name': must be given"),
        ('[[leaf]]\nname = "a"', "[[leaf]] number 1: field 'nodes': must be given"),
        ('[[leaf]]\nname = "a"\nnodes = []', "[[leaf]] number 1: field 'nodes': "),
        ('[[leaf]]\nname = "a"\nnodes = "n"', "field 'nodes': must be a list, for example"),
        ('[[leaf]]\nname = "a"\nnodes = ["n["]', "field 'nodes': 'n[' is neither a name nor names with ranges"),
        ('[[leaf]]\nname = "a,b"\nnodes = ["n"]', "field 'name': must be one name (got 'a,b')"),
        ('[[leaf]]\nname = "a"\nrak = "r"\nnodes = ["n"]', "unknown field 'rak'; did you mean 'rack'?"),
        ('[[leaf]]\nname = "a"\nleaf = "b"\nnodes = ["n"]', "field 'leaf': the name of the table already says it"),
        (
            '[[leaf]]\nname = "a"\nnodes = ["n"]\n[[leaf]]\nname = "a"\nnodes = ["m"]',
            "[[leaf]] number 2: a is [[leaf]] number 1 already",
        ),
        (
            '[[rack]]\nname = "r"\nnodes = ["n"]\n[[leaf]]\nname = "a"\nrack = "q"\nnodes = ["n"]',
            "[[leaf]] number 1: node n in rack q here, in rack r by [[rack]] number 1: a node has one rack",
        ),
    ],
)
def test_wrong_tables_are_refused(text, reason):
    """With the file, the table, the field, what is wrong and what would be right."""
    with pytest.raises(SettingsError) as refused:
        parse_topology(text, Path("topology.toml"))
    assert reason in str(refused.value)
    assert str(refused.value).startswith("topology_file: topology.toml: ")


def test_all_that_is_wrong_is_told_at_once_and_no_more_than_a_person_reads():
    """Of hundreds of problems the first, and how many there are besides."""
    with pytest.raises(SettingsError) as refused:
        parse_topology("\n".join(f"SwitchName=s{number}" for number in range(500)), Path("topology.conf"))
    lines = str(refused.value).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "and 480 more problems"


def test_a_file_is_read_by_its_ending(tmp_path):
    """What ends in .conf is Slurm's; without a file nobody is placed."""
    (tmp_path / "topology.conf").write_text(TREE)
    (tmp_path / "racks.toml").write_text(TOML)
    assert "tux0" in read_topology(tmp_path / "topology.conf")
    assert "login" in read_topology(tmp_path / "racks.toml")
    assert read_topology(None) == {}


@pytest.mark.parametrize(("name", "text"), [("topology.conf", TREE), ("racks.toml", TOML)])
def test_files_of_any_editor_are_read(tmp_path, name, text):
    """Also with Windows' ends of lines, and with the mark that some put before all text."""
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read_topology(tmp_path / name) == parse_topology(text, tmp_path / name)


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "cannot read "), (b"\xff\xfe", "line 1 is not text in UTF-8; save")]
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, content, reason):
    """With its path."""
    path = tmp_path / "topology.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=reason):
        read_topology(path)


@pytest.mark.parametrize("name", ["topology.conf", "topology.toml"])
@given(text=st.text(alphabet="SwitchName=Nodes= ab01,[]-#\\\n\"'leaf"))
def test_any_text_is_understood_or_refused(name, text):
    """Nothing else comes of what may stand in a file."""
    with contextlib.suppress(SettingsError):
        parse_topology(text, Path(name))


@pytest.mark.parametrize(
    ("mark", "name", "count"), [("[[leaf]]", "racks.toml", 32), ("SwitchName", "topology.conf", 64)]
)
def test_the_files_that_the_guide_shows_are_right(mark, name, count):
    """They can be used as they stand."""
    shown = re.findall(r"^```text\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(parse_topology(next(block for block in shown if mark in block), Path(name))) == count
