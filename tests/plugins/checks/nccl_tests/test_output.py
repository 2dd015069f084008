"""Outputs of nccl-tests in several versions: recorded ones and synthetic ones, as their first lines say."""

import json
from pathlib import Path

import pytest
from tests.cases import cases

from muster_plugins.checks.nccl_tests.output import parse_json, parse_text

RECORDED = Path(__file__).parent / "recorded"

GIB = 1 << 30


def recorded(name):
    return (RECORDED / name).read_text(encoding="ascii")


@cases(
    ("name", "expected"),
    [
        ("all_reduce_h100_two_nodes.txt", (7, (8 * GIB, 2 * GIB, "sum", -1, 338.82, 0), 0)),
        ("all_gather_b200_two_nodes.txt", (9, (8 * GIB, GIB // 8, "none", -1, 366.29, 0), 0)),
        ("all_reduce_a100_two_gpus_nccl_info.txt", (3, (GIB // 2, GIB // 8, "sum", -1, 192.43, 0), 0)),
        ("all_reduce_2.17.9_corrupted.txt", (12, (GIB // 8, GIB // 8, "sum", -1, 89.85, 0), None)),
        ("all_reduce_2.20.0_first_rows.txt", (4, (1 << 16, 1 << 14, "sum", -1, 0.96, 0), None)),
        ("all_reduce_mpirun_tagged.txt", (3, (32, 8, "sum", -1, 0.0, 0), None)),
        ("all_reduce_failed_between.txt", (5, (16 * GIB, 4 * GIB, "sum", -1, 367.29, 0), None)),
        ("all_reduce_old_first_rows.txt", (3, (32, 8, "sum", -1, 0.0, None), None)),
        ("all_gather_old_out_of_bounds.txt", (1, (4 * GIB, GIB // 8, "none", -1, 129.05, None), 2)),
        ("all_gather_2.13.6_one_gpu.txt", (1, (GIB // 32, GIB // 128, "none", -1, 0.0, 0), 0)),
        ("alltoall_one_gpu.txt", (1, (GIB // 32, GIB // 128, "none", -1, 0.0, 0), 0)),
        ("sendrecv_a100.txt", (4, (GIB, GIB // 4, "sum", -1, 195.1, 0), None)),
        ("broadcast_unchecked.txt", (6, (2 * GIB, GIB // 2, "none", 0, 164.97, None), 0)),
        ("all_reduce_2.17.txt", (4, (4 * GIB, GIB, "sum", -1, 481.81, 0), 0)),
        ("broadcast_2.17_in_place.txt", (1, (GIB, GIB // 4, "none", 0, 268.44, 0), 0)),
        ("all_reduce_2.17_wrong.txt", (1, (GIB, GIB // 4, "sum", -1, 472.13, 7), 2)),
    ],
)
def test_tables_of_several_versions(name, expected):
    """How many rows, the last of them, and the program's own count.

    Old and new columns, marks of mpirun, NCCL's log in between, N/A and nothing in place.
    """
    output = parse_text(recorded(name))
    last = output.rows[-1]
    row = (last.size_bytes, last.count, last.redop, last.root, last.busbw_gbps, last.wrong)
    assert (len(output.rows), row, output.out_of_bounds) == expected
    assert output.unreadable == []


@cases(
    ("name", "wrong"),
    [
        ("all_reduce_old_first_rows.txt", None),
        ("all_gather_old_out_of_bounds.txt", 2),
        ("all_reduce_2.17_wrong.txt", 7),
        ("all_reduce_2.17.9_corrupted.txt", 3_935_945),
        ("alltoall_one_gpu.txt", 0),
        ("broadcast_unchecked.txt", None),
    ],
)
def test_wrong_elements_are_those_that_were_counted(name, wrong):
    """Old versions print the largest difference, which rounding may cause; what was not checked is not right."""
    assert parse_text(recorded(name)).wrong == wrong


def test_a_report_of_what_was_not_checked_counts_nothing():
    """The program writes null for each row, and none out of bounds."""
    document = json.loads(recorded("all_reduce_2.17.json"))
    for result in document["results"]:
        for half in ("out_of_place", "in_place"):
            result[half] = result[half] and result[half] | {"nwrong": None}
    output = parse_json(json.dumps(document))
    assert (output.out_of_bounds, output.wrong) == (0, None)


def test_a_table_that_breaks_off_is_known_to():
    """What stands before the break is read."""
    output = parse_text(recorded("all_reduce_2.17_truncated.txt"))
    assert [row.size_bytes for row in output.rows] == [GIB]
    assert output.out_of_bounds is None
    assert len(output.unreadable) == 1


@cases(
    "text",
    [
        "",
        "\x00\xff" * 100,
        "hello\nworld",
        recorded("all_reduce_failed_at_once.txt"),
        recorded("all_reduce_rank_in_front.txt"),
        "1 2 float sum -1 3.0 4.0 5.0 0",
        "# size count busbw",
    ],
)
def test_what_is_no_table_has_no_rows(text):
    """Rows without headings, headings without rows, and things of another kind."""
    assert parse_text(text).rows == []


@pytest.mark.parametrize("bad", ["nan", "inf", "-1.0", "fast"])
def test_a_row_with_a_value_that_cannot_be_is_unreadable(bad):
    """Rather than half read."""
    output = parse_text(recorded("all_reduce_2.17_wrong.txt").replace("472.13", bad, 1))
    assert (output.rows, len(output.unreadable)) == ([], 1)


@pytest.mark.parametrize(
    "headings", ["size count time busbw", "size count time time time busbw", "size count busbw time"]
)
def test_a_row_below_headings_of_another_program_is_unreadable(headings):
    """They have something of the right ones."""
    output = parse_text(f"# {headings}\n 8 2 float 1 2 3 4 5 6\n")
    assert (output.rows, len(output.unreadable)) == ([], 1)


def test_unreadable_lines_are_few_and_short():
    """However many there are."""
    output = parse_text("# size count type busbw\n" + ("1 2 float " + "x" * 10_000 + "\n") * 10_000)
    assert len(output.unreadable) == 5
    assert max(map(len, output.unreadable)) == 200


def test_the_json_says_what_the_table_says():
    """An element that was not checked is no wrong one."""
    output = parse_json(recorded("all_reduce_2.17.json"))
    assert [(row.size_bytes, row.root, row.busbw_gbps, row.wrong) for row in output.rows] == [
        (1024, -1, 0.06, 0),
        (GIB, -1, 472.13, 0),
    ]
    assert output.out_of_bounds == 0


@cases("text", ["", "{", "[]", "{}", '{"results": 3}', "null"])
def test_json_of_another_kind_is_refused(text):
    """As what it is not."""
    with pytest.raises(ValueError, match=r"results|Expecting"):
        parse_json(text)


@cases(
    "result",
    [
        None,
        3,
        [],
        {},
        {"size": 8},
        {"size": "x", "out_of_place": {}},
        {"out_of_place": 3},
        {"size": float("inf")},
        {"size": 8, "count": 1, "type": "", "redop": "", "root": 0, "out_of_place": {"time": 10**400}},
    ],
)
def test_results_of_another_kind_are_unreadable(result):
    """The others are read."""
    document = json.loads(recorded("all_reduce_2.17.json"))
    document["results"].append(result)
    output = parse_json(json.dumps(document))
    assert (len(output.rows), len(output.unreadable)) == (2, 1)
