import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from muster.model import Topology, Verdict
from muster_coordinator.views.sweeps.matrix.axes import Axes, Border, label
from muster_coordinator.views.sweeps.matrix.colours import STEPS, colour, step_of
from muster_coordinator.views.sweeps.matrix.legend import WIDTH_PX
from muster_coordinator.views.sweeps.matrix.pairs import Pair, pairs
from muster_coordinator.views.sweeps.matrix.picture import matrix_picture
from muster_coordinator.views.sweeps.matrix.style import CHARACTER_PX, CONVICTED, GAP_PX, INK, NO_NUMBER, PALE

SVG = "{http://www.w3.org/2000/svg}"


def drawn(record, places=None):
    return ET.fromstring(matrix_picture(record, places or {}))


def texts(root):
    return [text.text for text in root.iter(f"{SVG}text")]


def cells(root):
    """By the title of a pair, the colour of its cells and where they are."""
    found = {}
    for parent in root.iter(f"{SVG}g"):
        for path in parent.findall(f"{SVG}path"):
            title = path.find(f"{SVG}title")
            if title is not None:
                corners = re.findall(r"M(\d+) (\d+)", path.get("d", ""))
                found[title.text] = parent.get("fill"), [(int(x), int(y)) for x, y in corners]
    return found


def test_pairs_have_the_colour_of_the_median(group, sweep):
    """In both of their cells, with the numbers in words."""
    record = sweep(
        [group("n1", "n2", at=1.0), group("n3", "n4", at=10.0)],
        [group("n2", "n1", at=4.0), group("n4", "n3", at=10.0)],
        [group("n1", "n2", at=5.0)],
    )
    found = cells(drawn(record))
    assert found["n1 - n2: 4 GB/s (3 runs, 0 failed)"] == (colour(step_of(4.0, 10.0)), [(0, 1), (1, 0)])
    assert found["n3 - n4: 10 GB/s (2 runs, 0 failed)"] == (colour(STEPS - 1), [(2, 3), (3, 2)])
    assert len(found) == 2


def test_pairs_that_failed_are_crossed_out(group, sweep):
    """Those that measured nothing as well, and these have no colour."""
    record = sweep([group("n1", "n2", verdict=Verdict.FAIL), group("n3", "n4", at=1.0, verdict=Verdict.FAIL)])
    root = drawn(record)
    assert cells(root)["n1 - n2: nothing measured (1 run, 1 failed)"][0] == NO_NUMBER
    crosses = [path.get("d") for path in root.iter(f"{SVG}path") if "l1 1" in path.get("d", "")]
    assert crosses[0].count("M") == 4
    assert "2 pairs failed: n1 with n2, n3 with n4." in root.findtext(f"{SVG}desc", "")


def test_only_pairs_that_showed_something_count(group, sweep):
    """Neither single nodes, nor larger groups, nor what could not be told."""
    record = sweep(
        [group("n1", at=1.0), group("n2", "n3", "n4", at=1.0), group("n5", "n6", verdict=Verdict.UNKNOWN)],
        [group("n6", "n5", at=2.0)],
    )
    assert pairs(record) == [Pair(("n5", "n6"), 2.0, 1, 0)]


def test_whoever_cannot_see_it_is_told(bad_link):
    """A title and a description that the picture refers to; nothing in it runs."""
    root = drawn(bad_link)
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title desc"
    assert {element.get("id") for element in root} >= {"title", "desc"}
    assert root.findtext(f"{SVG}title") == "Sweep s: what pairs of nodes reached in collective"
    assert root.findtext(f"{SVG}desc") == (
        "6 nodes by 6 nodes; 5 of 15 pairs ran and reached 1 GB/s to 10.2 GB/s; "
        "3 pairs failed: n1 with n2, n1 with n3, n1 with n5."
    )
    assert not list(root.iter(f"{SVG}script"))


def test_the_heading_says_what_is_shown(bad_link):
    """Sweep, check, metric with its unit, and time, in two lines above everything else."""
    root = drawn(bad_link)
    first, second, *labels = root.iter(f"{SVG}text")
    assert first.text == "Sweep s: what pairs of nodes reached in collective"
    assert second.text == "median busbw_gbps in GB/s, started 1970-01-01T00:00:00.000Z"
    assert float(first.get("y", 0)) < float(second.get("y", 0)) < float(labels[0].get("y", 0))
    (cells,) = (path for path in root.iter(f"{SVG}g") if "scale(36)" in path.get("transform", ""))
    longest_label = CHARACTER_PX * len("n1")
    assert float(second.get("y", 0)) < float(re.findall(r"[\d.]+", cells.get("transform", ""))[1]) - longest_label


def test_a_leaf_is_named_at_the_line_where_it_begins(bad_leaf, places):
    """The line goes on to the right of the matrix, and the name stands just below it."""
    root = drawn(bad_leaf, places)
    names = {text.text: float(text.get("y", 0)) for text in root.iter(f"{SVG}text") if "leaf l" in (text.text or "")}
    lines = [re.fullmatch(r"M\S+ ([\d.]+)h[\d.]+", path.get("d", "")) for path in root.iter(f"{SVG}path")]
    starts = [float(line[1]) for line in lines if line is not None]
    assert list(names) == ["leaf l1", "leaf l2"]
    assert [name - start for name, start in zip(names.values(), starts, strict=True)] == pytest.approx([11.0, 11.0])
    assert starts[1] - starts[0] == pytest.approx(2 * 36.0)


def test_the_legend_has_numbers(bad_link, sweep):
    """From nothing to the most; without any number it says so."""
    shown = texts(drawn(bad_link))
    assert [text for text in shown if text.endswith("GB/s")] == [
        "0 GB/s",
        "2.55 GB/s",
        "5.1 GB/s",
        "7.65 GB/s",
        "10.2 GB/s",
    ]
    assert "no pair has measured anything" in texts(drawn(sweep(nodes=("n1", "n2"))))


def test_the_numbers_of_the_scale_keep_apart(group, sweep):
    """By two characters at least, also where they are long."""
    root = drawn(sweep([group("n1", "n2", at=0.0417)]))
    shown = [(float(it.get("x", 0)), it) for it in root.iter(f"{SVG}text") if (it.text or "").endswith("GB/s")]
    widths = [CHARACTER_PX * len(it.text or "") for _, it in shown]
    starts = [x - width / 2 * (it.get("text-anchor") == "middle") for (x, it), width in zip(shown, widths, strict=True)]
    ends = [start + width for start, width in zip(starts, widths, strict=True)]
    assert all(later - end >= 2 * CHARACTER_PX for end, later in zip(ends, starts[1:], strict=False))
    assert ends[-1] <= WIDTH_PX + GAP_PX


def test_nodes_keep_their_order_and_convicted_ones_stand_out(bad_link):
    """Every node is named at both axes."""
    root = drawn(bad_link)
    assert [text for text in texts(root) if re.fullmatch(r"n\d", text)] == [f"n{i}" for i in range(1, 7) for _ in "xy"]
    assert {text.text for text in root.iter(f"{SVG}text") if text.get("fill") == CONVICTED} == {"n1"}


def test_leaves_and_racks_are_parted(bad_leaf, places):
    """Leaves by black lines and with their names, racks within them by grey ones."""
    root = drawn(bad_leaf, places)
    lines = {path.get("d"): path.get("stroke") for path in root.iter(f"{SVG}path") if "H" in path.get("d", "")}
    assert lines == {"M0 1H4M1 0V4": PALE, "M0 2H4M2 0V4": INK, "M0 3H4M3 0V4": PALE}
    assert {"leaf l1", "leaf l2"} <= set(texts(root))


@pytest.mark.parametrize(("nodes", "apart"), [(8, 1), (25, 1), (500, 7), (16384, 7)])
def test_labels_thin_out(nodes, apart):
    """They never come nearer to each other than a line of text is high; convicted nodes keep theirs."""
    names = [f"node-{number}" for number in range(nodes)]
    axes = Axes(names, {})
    chosen = axes.named(frozenset({names[3]}))
    assert 3 in chosen
    assert len(chosen) >= nodes // apart - 1
    assert all(later - before >= apart for before, later in pairwise(chosen))
    assert 2.0 <= axes.cell_px <= 36.0


def test_borders_need_known_places():
    """Where nobody said, nothing begins; where only some are known, they are parted from the others."""
    nodes = ("n1", "n2", "n3")
    assert list(Axes(nodes, {}).borders()) == []
    assert list(Axes(nodes, {"n3": Topology(leaf="l")}).borders()) == [Border(2, of_leaf=True)]
    racks = {node: Topology(rack=node) for node in nodes}
    assert list(Axes(nodes, racks).borders()) == [Border(1, of_leaf=False), Border(2, of_leaf=False)]
    assert [domain.name for domain in Axes(nodes, racks).domains()] == ["rack n1", "rack n2", "rack n3"]


def test_five_hundred_nodes_fit(group, sweep):
    """The picture stays small enough to be shown."""
    names = [f"node-{number:03}" for number in range(500)]
    record = sweep([group(one, other, at=10.0) for one, other in zip(names[::2], names[1::2], strict=True)])
    root = drawn(record, {name: Topology(leaf=f"l{place // 32}") for place, name in enumerate(names)})
    assert float(root.get("width", 0)) < 1300
    assert len(cells(root)) == 250


@pytest.mark.parametrize("name", ["<script>&\"'", "nul\x00 and \ud800", "x" * 300])
def test_places_of_any_name_can_be_drawn(group, sweep, name):
    """Labels of nodes are whatever somebody wrote: what XML cannot hold is replaced, what is long is cut."""
    root = drawn(sweep([group("n1", "n2", at=1.0)]), {"n1": Topology(leaf=name), "n2": Topology(leaf=name)})
    shown = next(text for text in texts(root) if text.startswith("leaf "))
    assert len(shown) <= 24
    assert shown == label(f"leaf {name}".replace("\x00", "\ufffd").replace("\ud800", "\ufffd"))


def test_colours_go_from_dark_blue_to_yellow():
    """Values beyond the scale have the colours of its ends."""
    assert (colour(0), colour(STEPS - 1)) == ("#00204d", "#ffea46")
    assert [step_of(value, 10.0) for value in (-1.0, 0.0, 5.0, 10.0, 11.0)] == [0, 0, 16, 31, 31]
    assert step_of(0.0, 0.0) == 0
