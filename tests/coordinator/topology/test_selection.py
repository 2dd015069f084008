"""Which nodes a selection means, and how one that means none is refused."""

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import cases

from muster.errors import Refused
from muster.model import Health, ServiceState, Topology
from muster_coordinator.evidence.node import Node
from muster_coordinator.topology.selection import Selection, parse_selection
from muster_coordinator.topology.selection_term import Candidate

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "topology.md"

NODES = [
    Candidate(
        f"node-{number:02}",
        Topology(block="b1", rack=f"r{number // 4}", leaf=f"l{number // 8}", host=f"h{number}"),
        {"pool": "a3", "example.com/row": "7"} if number < 4 else {},
        Health.FAILED if number == 5 else Health.HEALTHY,
        ServiceState.IN_SERVICE,
        "a3-megagpu-8g" if number < 8 else None,
        frozenset({"NVIDIA H100 80GB HBM3", "NVIDIA L4"} if number == 0 else {"NVIDIA H100 80GB HBM3"}),
    )
    for number in range(16)
]
DECLARED = {"node-00": Topology(rack="r0"), "node-90": Topology(rack="r0"), "node-91": Topology(rack="r9")}


def chosen(text, nodes=NODES, declared=DECLARED):
    """The numbers of the nodes that are meant."""
    return [int(name.removeprefix("node-")) for name in parse_selection(text).choose(nodes, declared).nodes]


@cases(
    ("text", "numbers"),
    [
        ("rack=r1,r2", range(4, 12)),
        ("rack=r[1-2]", range(4, 12)),
        ("rack=r*", range(16)),
        ("rack=r1 leaf=l0", range(4, 8)),
        ("rack=r1;leaf=l0", range(4, 8)),
        ("  rack=r1 ;; leaf=l0 ", range(4, 8)),
        ("rack!=r1,r2", [0, 1, 2, 3, 12, 13, 14, 15]),
        ("block=b1 rack!=r[0-2]", range(12, 16)),
        ("host=h[5-6],h9", [5, 6, 9]),
        ("node-03,node-01", [1, 3]),
        ("node-03 , node-01", [1, 3]),
        ("node-[01-03,15]", [1, 2, 3, 15]),
        ("node-0?", range(10)),
        ("name=node-1* leaf=l1", range(10, 16)),
        ("node-[00-07] name!=node-[02-07]", [0, 1]),
        ("health=failed", [5]),
        ("rack=r1 health!=FAILED", [4, 6, 7]),
        ("service=IN_SERVICE rack=r3", range(12, 16)),
        ("machine_type=a3-*", range(8)),
        ("machine_type!=a3-megagpu-8g", range(8, 16)),
        ("gpu_model=*L4", [0]),
        ("gpu_model!=*L4 rack=r0", [1, 2, 3]),
        ('gpu_model="NVIDIA H100 80GB HBM3" rack=r0', range(4)),
        ('gpu_model="H100 80GB HBM3" rack=r0', range(4)),
        ("gpu_model!=L4 rack=r0", [1, 2, 3]),
        ("label:pool=a3", range(4)),
        ("label:example.com/row=7", range(4)),
        ("label:pool!=a3 leaf=l0", range(4, 8)),
        ("label:maintenance!=true rack=r0", range(4)),
        ("health!=suspect rack=r0", range(4)),
    ],
)
def test_all_terms_have_to_fit(text, numbers):
    """Any of a term's values is enough; what nobody said of a node fits nothing and is excluded by nothing."""
    assert chosen(text) == [*numbers]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("health=lost", ("gone", "bad")),
        ("health!=LOST", ("here",)),
        ("health=HEALTHY", ("here",)),
        ("health!=HEALTHY", ("gone", "bad")),
        ("health=UNKNOWN", ("gone",)),
        ("health=FAILED", ("bad",)),
        ("health=FAILED health!=LOST", ()),
        ("health=HEALTHY health!=LOST", ("here",)),
    ],
)
def test_a_lost_node_is_lost_and_not_healthy(text, names):
    """Whoever looks for trouble finds it, and a fault that was found before it fell silent still selects it."""
    nodes = [made.candidate for made in (silent("gone", Health.HEALTHY), silent("bad", Health.FAILED))]
    nodes.insert(1, Candidate("here", health=Health.HEALTHY))
    assert parse_selection(text).fitting(nodes, {}).nodes == names


def silent(name, health):
    """A node that is lost, and had this health when it last reported."""
    node = Node(name, first_seen=0.0, last_seen=0.0, online=False)
    node.health = health
    return node


def test_without_terms_every_node_is_meant():
    """Also those that the topology file knows and nobody else."""
    everything = Selection().choose(NODES, DECLARED)
    assert everything.nodes == tuple(node.name for node in NODES)
    assert everything.never_heard_of == ("node-90", "node-91")


@cases(
    ("text", "rack"),
    [
        ("rack=a=b", "a=b"),
        ("rack=a!=b", "a!=b"),
        ('rack="row 7"', "row 7"),
        ("rack=Zürich-é", "Zürich-é"),
        ("rack=r?", "r?"),
    ],
)
def test_places_of_any_name_can_be_meant(text, rack):
    """As agents and labels may have them: with signs of our own, in quotes with spaces, in any script."""
    nodes = [Candidate("n1", Topology(rack=rack)), Candidate("n2", Topology(rack="other"))]
    assert parse_selection(text).choose(nodes, {}).nodes == ("n1",)


def test_nodes_that_only_the_topology_file_knows_are_named():
    """Where some of a place were never heard of, the others are meant."""
    found = parse_selection("rack=r0").choose(NODES, DECLARED)
    assert len(found.nodes) == 4
    assert found.never_heard_of == ("node-90",)


@cases(
    ("text", "reason"),
    [
        ("", "the selection is empty: leave it out to mean all nodes, or write one, for example rack=r1"),
        (" ; ", "the selection is empty"),
        ("rak=r1", "'rak=r1': unknown key 'rak'; did you mean 'rack'? (valid: block, gpu_model,"),
        ("=r1", "'=r1': unknown key ''"),
        ("rack = r1", "'=': unknown key ''"),
        ("label:=x", "'label:=x': unknown key 'label:'"),
        ("rack=", "'rack=': has an empty name: give names between commas"),
        ("rack=r[1-", "'rack=r[1-': 'r[1-' is neither a name nor names with ranges, for example node-[001-016,020]"),
        ('"rack=r1', "selection '\"rack=r1': no closing quotation"),
        ("rack=r7", "unknown rack 'r7' (valid: r0, r1, r2, r3)"),
        ("rack=r1,q*", "unknown rack 'q*' (valid: r0, r1, r2, r3)"),
        ("rack!=r7", "unknown rack 'r7'"),
        ("node-01,node-99", "unknown node 'node-99'; did you mean 'node-09'?"),
        ("node-[14-17]", "unknown node 'node-16'"),
        ("node-[14-17]", "; and 1 more of name=node-14,node-15,node-16,node-17"),
        ("node-[1-5000]*", "the selection makes 5000 patterns, at most 100 are allowed: leave out * and ?"),
        (" ".join(["node-01"] * 33), "the selection has more than 32 terms: give names between commas, without spaces"),
        (
            "health=well",
            "'health=well': unknown health 'WELL' (valid: DEGRADED, FAILED, HEALTHY, LOST, SUSPECT, UNKNOWN)",
        ),
        ("service=fine", "unknown service 'FINE' (valid: ACCEPTING, CORDONED, HELD, IN_SERVICE, PROBATION)"),
        ("rack=r9", "rack 'r9' is in the topology file, but no agent has reported from there yet: it names node-91"),
        ("node-90", "node 'node-90' is in the topology file, but no agent has reported from there yet"),
        ("health=suspect", "no node fits every term: health=SUSPECT fits none"),
        ("health=suspect", "(there is FAILED, HEALTHY)"),
        ("label:pool=b", "label:pool=b fits none (there is a3)"),
        ("label:pol=b", "label:pol=b fits none (no node has a label:pol just now)"),
        ("rack=r0 rack=r1", "rack=r0 fits 4 of 16 nodes; rack=r1 fits 4 of 16 nodes"),
        ("node-01 node-02", "name=node-01 fits 1 of 16 nodes; name=node-02 fits 1 of 16 nodes"),
    ],
)
def test_what_means_nothing_is_refused(text, reason):
    """With what was wrong, which term it was, and what would be right."""
    with pytest.raises(Refused, match=re.escape(reason)):
        chosen(text)


def test_a_refusal_stays_readable():
    """Of thousands of names it shows a few."""
    nodes = [Candidate(f"node-{number}", labels={"serial": f"s{number}"}) for number in range(4000)]
    for text in ("node-[0-8000]", "label:serial=x", "rack=r1", "node-[0-3999] node-5 node-6"):
        with pytest.raises(Refused) as refused:
            chosen(text, nodes, {})
        assert len(str(refused.value)) < 700


def test_an_empty_fleet_has_its_own_reason():
    """No selection could mean anything."""
    for text in ("health=healthy", "rack=r1"):
        with pytest.raises(Refused, match="there are no nodes yet"):
            chosen(text, [], {})


@given(st.text(alphabet="rack=!,;:*?[]-019 \"'\\\nnode"))
def test_any_text_is_understood_or_refused(text):
    """Nothing else comes of what a person may type."""
    with contextlib.suppress(Refused):
        parse_selection(text).choose(NODES, DECLARED)


@cases("row", re.findall(r"^\| `(.+?)` \| .* \|$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE))
def test_the_selections_that_the_guide_shows_are_right(row):
    """They can be typed as they stand."""
    assert parse_selection(row).terms
