"""Outputs of nccl-tests in several versions. They are synthetic, as their first lines say."""

import json
from pathlib import Path

import pytest

from muster_plugins.nccl_tests.output import parse_json, parse_text

RECORDED = Path(__file__).parent / "recorded" / "nccl_tests"

GIB = 1 << 30


def recorded(name):
    return (RECORDED / name).read_text(encoding="ascii")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("all_reduce_2.17.txt", [(1024, 256, "sum", -1, 0.06, 0), (GIB, GIB // 4, "sum", -1, 472.13, 0)]),
        (
            "alltoall_2.13_mpirun.txt",
            [(GIB, GIB // 8, "none", -1, 83.89, 0), (2 * GIB, GIB // 4, "none", -1, 84.55, 0)],
        ),
        ("all_gather_2.0.txt", [(GIB, GIB // 32, "none", -1, 130.49, None)]),
        ("broadcast_2.17_in_place.txt", [(GIB, GIB // 4, "none", 0, 268.44, 0)]),
        ("all_reduce_2.17_wrong.txt", [(GIB, GIB // 4, "sum", -1, 472.13, 7)]),
    ],
)
def test_tables_of_several_versions(name, expected):
    """Old and new columns, marks of mpirun, NCCL's log in between, N/A and nothing in place."""
    output = parse_text(recorded(name))
    rows = [(each.size_bytes, each.count, each.redop, each.root, each.busbw_gbps, each.wrong) for each in output.rows]
    assert rows[: len(expected)] == expected
    assert output.out_of_bounds == (2 if "wrong" in name else 0)
    assert output.unreadable == []


def test_a_difference_of_rounding_is_no_wrong_element():
    """Old versions print the largest difference where new ones count; their own count is what tells."""
    assert parse_text(recorded("all_gather_2.0.txt")).wrong == 0
    assert parse_text(recorded("all_reduce_2.17_wrong.txt")).wrong == 7


def test_a_table_that_breaks_off_is_known_to():
    """What stands before the break is read."""
    output = parse_text(recorded("all_reduce_2.17_truncated.txt"))
    assert [row.size_bytes for row in output.rows] == [GIB]
    assert output.out_of_bounds is None
    assert len(output.unreadable) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00\xff" * 100,
        "hello\nworld",
        recorded("all_reduce_failed.txt"),
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


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"results": 3}', "null"])
def test_json_of_another_kind_is_refused(text):
    """As what it is not."""
    with pytest.raises(ValueError, match=r"results|Expecting"):
        parse_json(text)


@pytest.mark.parametrize(
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
