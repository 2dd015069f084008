"""The plot of growth is drawn from what the benchmark publishes."""

from argparse import Namespace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.figures import Figure, publish
from benchmarks.scale_plot import SHOWN, plot, read, scale_to


def published(file: Path, *, postgres: bool, values: dict[int, float]) -> Path:
    """A file of the benchmark with the same value for each figure of a number of nodes."""
    figures = [
        Figure(what=f"{what}, {nodes} nodes", unit="s", value=value)
        for nodes, value in values.items()
        for what in [*SHOWN.values(), "fault to API"]
    ]
    publish(Namespace(json=file, postgres=postgres, store=None), figures)
    return file


def test_each_database_is_a_line_over_the_nodes(tmp_path: Path) -> None:
    """Also if its numbers of nodes are in several files. Of the same number of nodes, the last file counts."""
    files = [
        published(tmp_path / "1.json", postgres=False, values={1_000: 1.0, 2_000: 5.0}),
        published(tmp_path / "2.json", postgres=False, values={2_000: 2.0, 10_000: 10.0}),
        published(tmp_path / "3.json", postgres=True, values={1_000: 3.0}),
    ]
    growth = read(files)
    assert growth.keys() == {*SHOWN.values()}
    for by_database in growth.values():
        assert by_database == {"SQLite": {1_000: 1.0, 2_000: 2.0, 10_000: 10.0}, "PostgreSQL": {1_000: 3.0}}
    picture = ElementTree.fromstring(plot(growth))
    texts = {each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {*SHOWN, "1k", "2k", "10k", "SQLite", "PostgreSQL"} <= texts
    lines = [each.attrib["points"].split() for each in picture.iter("{http://www.w3.org/2000/svg}polyline")]
    assert sorted(map(len, lines)) == [1] * len(SHOWN) + [3] * len(SHOWN)
    for line in lines:
        if len(line) == 3:
            (x1, y1), (x2, y2), (x3, y3) = (tuple(map(float, point.split(","))) for point in line)
            assert (y2 - y1) / (x2 - x1) == pytest.approx((y3 - y2) / (x3 - x2), abs=0.02), "what is linear looks so"


@pytest.mark.parametrize("most", [0.0, 0.004, 0.99, 1.0, 7.3, 37.0, 44.0, 541.0, 10_000.0])
def test_a_scale_has_few_round_ticks_from_zero_to_the_most(most: float) -> None:
    """For any size of the values."""
    ticks = scale_to(most).ticks
    assert ticks[0] == 0 < ticks[-1]
    assert ticks[-1] >= most
    assert 2 <= len(ticks) <= 7
