import csv
import io
from typing import Any

import pytest

from muster.nccl_tests_table import HalfResult, SizeResult
from muster_coordinator.model.sweep_records import MemberRecord, SweepRecord
from muster_coordinator.views.sweeps.export_format import ExportFormat
from muster_coordinator.views.sweeps.exports import FORMS
from muster_coordinator.views.sweeps.nccl_tests_text import nccl_tests_text
from muster_coordinator.views.sweeps.rank_table import rank_table
from muster_plugins.checks.nccl_tests.output import parse_text


def test_every_format_has_a_form():
    """Each is made of any record, even of one without rounds."""
    assert set(FORMS) == set(ExportFormat)


def test_json_is_the_complete_record(bad_link):
    """Nothing is lost on the way."""
    assert SweepRecord.model_validate_json(FORMS[ExportFormat.JSON].made(bad_link, {})) == bad_link


def rows(record):
    return list(csv.DictReader(io.StringIO(rank_table(record))))


def test_every_rank_has_a_line(bad_link):
    """With what it measured; who reported nothing has one without a rank."""
    table = rows(bad_link)
    assert len(table) == 2 * 2 + 2 * 2 + 2 + 2 + 2 + 2 * 2 + 2 + 2 * 2 + 2 * 2
    assert table[3] == {
        "sweep": "s",
        "round": "1",
        "group": "s-1",
        "ending": "FINISHED",
        "group_verdict": "FAIL",
        "objective": "1.0",
        "node": "n2",
        "rank": "3",
        "verdict": "PASS",
        "algbw_gbps": "0.8",
        "busbw_gbps": "1.0",
        "wrong_elements": "0.0",
    }
    silent = table[9]
    assert (silent["node"], silent["rank"], silent["verdict"], silent["busbw_gbps"]) == ("n6", "", "", "")


def test_texts_cannot_be_taken_for_formulas(group, sweep):
    """Names of metrics come from nodes; numbers stay numbers."""
    measured: Any = ({"=HYPERLINK(1)": -2.5, 'a "quoted", b': [1.0, None, 3.0], "@x": None},)
    made = group("n1", places=(MemberRecord(node="n1", measured=measured),))
    (row,) = rows(sweep([made]))
    assert row["'=HYPERLINK(1)"] == "-2.5"
    assert row['a "quoted", b'] == "1.0  3.0"
    assert row["'@x"] == ""
    assert not any(line.startswith(("=", "+", "@")) for line in rank_table(sweep([made])).split(","))


def test_a_sweep_without_groups_is_a_header(sweep):
    """And for nccl-tests nothing."""
    assert rows(sweep(nodes=("n1", "n2"))) == []
    assert nccl_tests_text(sweep(nodes=("n1", "n2"))) == ""


@pytest.mark.parametrize(
    ("params", "size", "time"),
    [
        ({"size_bytes": 1 << 20}, "1048576", "131.1"),
        ({"size_bytes": "1M"}, "1048576", "131.1"),
        ({"size_bytes": "1.5k"}, "1536", "0.19"),
        ({}, "N/A", "N/A"),
        ({"size_bytes": "9" * 400}, "N/A", "N/A"),
        ({"begin_bytes": "1M", "end_bytes": "1G"}, "N/A", "N/A"),
    ],
)
def test_groups_look_as_in_nccl_tests(group, sweep, params, size, time):
    """Ranks, a table with the mean over them, wrong elements in all."""
    record = sweep([group("n1", "n2", at=10.0)], params=params)
    lines = nccl_tests_text(record).splitlines()
    assert lines[0] == "# sweep s, round 1, group s-1: PASS"
    assert lines[4:8] == ["#  Rank  0 on         n1", "#  Rank  1 on         n1", "#  Rank  2 on         n2", lines[7]]
    assert lines[10].split()[1:6] == ["size", "count", "type", "redop", "root"]
    assert lines[12].split() == [size, *["N/A"] * 4, time, "8.00", "10.00", "0", *["N/A"] * 4]
    assert lines[13:] == ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 10"]
    assert len(lines[10]) == len(lines[11]) == len(lines[12])


def test_a_series_of_sizes_has_a_row_for_each(group, sweep):
    """As the first rank saw it, from 1 KB to 16 GB."""
    results = [
        SizeResult(
            size=1 << power,
            count=1 << power - 2,
            type="float",
            redop="sum",
            root="-1",
            in_place=HalfResult(time=2.0 ** (power - 5), alg_bw=32.0, bus_bw=60.0, nwrong=0),
        )
        for power in range(10, 35)
    ]
    first = MemberRecord(node="n1", first_rank=0, ranks=1, measured=({"busbw_gbps": 60.0},), by_size=tuple(results))
    second = MemberRecord(node="n2", first_rank=1, ranks=1, measured=({"busbw_gbps": 59.0},))
    text = nccl_tests_text(sweep([group("n1", "n2", places=(first, second))]))
    found = parse_text(text)
    assert (len(found.rows), found.unreadable, found.wrong) == (25, [], 0)
    assert [row.size_bytes for row in found.rows] == [1 << power for power in range(10, 35)]
    assert "N/A     N/A     N/A     N/A    32.00   32.00   60.00       0" in text
    assert text.endswith("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 60\n")


@pytest.mark.parametrize(
    ("measured", "told"),
    [
        ({"busbw_gbps": 1.0, "wrong_elements": 3.0}, "# Out of bounds values : 6 FAILED"),
        ({"busbw_gbps": 1.0, "wrong_elements": 0.0}, "# Out of bounds values : 0 OK"),
        ({"busbw_gbps": 1.0}, None),
    ],
)
def test_wrong_elements_are_summed_up(group, sweep, measured, told):
    """Over all ranks; a check that does not look says nothing."""
    made = group("n1", places=(MemberRecord(node="n1", ranks=2, measured=(measured, measured)),))
    lines = nccl_tests_text(sweep([made])).splitlines()
    assert [line for line in lines if "Out of bounds" in line] == ([] if told is None else [told])


def test_a_group_that_did_not_run_says_who_is_to_blame(bad_link):
    """In the place of a table."""
    text = nccl_tests_text(bad_link).split("\n\n")[2]
    assert "# n6: lost (its agent has vanished)" in text
    assert text.endswith("# no bandwidth was reported")
