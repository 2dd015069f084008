"""Tables of collectives: the same lines as in real output of nccl-tests, and what reports of nodes may hold."""

from pathlib import Path

from tests.cases import cases

from muster.model import Json
from muster.nccl_tests_table import HalfResult, SizeResult, heading_lines, results_in, table_lines, time_text

RECORDED = Path(__file__).parent.parent / "plugins" / "checks" / "nccl_tests" / "recorded"


def lines_of(name: str) -> list[str]:
    return (RECORDED / name).read_text(encoding="utf-8").splitlines()


def half(words: list[str]) -> HalfResult:
    time, algbw, busbw, wrong = words
    return HalfResult(time=float(time), alg_bw=float(algbw), bus_bw=float(busbw), nwrong=int(wrong))


def as_result(line: str) -> SizeResult:
    size, count, kind, redop, root, *speeds = line.split()
    measured = {"out_of_place": half(speeds[:4]), "in_place": half(speeds[4:])}
    return SizeResult(size=int(size), count=int(count), type=kind, redop=redop, root=root, **measured)


def test_a_table_is_that_of_nccl_tests():
    """Every word of the output that Google's documentation shows for two nodes with B200; only spaces may differ."""
    printed = [line for line in lines_of("all_gather_b200_two_nodes.txt") if "# recorded" not in line]
    head = next(number for number, line in enumerate(printed) if "size" in line)
    rows = [line for line in printed[head + 2 :] if line.lstrip()[:1].isdigit()]
    made = table_lines([as_result(line) for line in rows])
    assert [line.split() for line in made[1:]] == [line.split() for line in (*printed[head : head + 2], *rows)]


def test_the_headings_are_those_of_nccl_tests():
    """To the letter, as version 2.17.9 prints them, but for spaces at the end and where the two halves are named."""
    printed = lines_of("all_reduce_2.17.9_corrupted.txt")
    number = next(number for number, line in enumerate(printed) if "out-of-place" in line)
    halves, *names = heading_lines()
    assert halves.split() == printed[number].split()
    assert [line.rstrip() for line in names] == [line.rstrip() for line in printed[number + 1 : number + 3]]


@cases(
    ("time_us", "text"), [(0.05, "0.05"), (48.104, "48.10"), (859.2, "859.2"), (3608.0, "3608.0"), (15394.4, "15394")]
)
def test_times_have_as_many_decimals_as_there(time_us, text):
    """The column never grows wider than seven characters."""
    assert time_text(time_us) == text


ROW: Json = {"size": 8, "count": 2, "type": "float", "redop": "sum", "root": "-1"}
HALF: Json = {"time": 1.0, "alg_bw": 2.0, "bus_bw": 3.0, "nwrong": None}


def test_what_was_not_measured_is_not_available():
    """A half of its own, and elements that nobody compared."""
    (result,) = results_in({"report": {"results": [{**ROW, "in_place": HALF}]}})
    words = table_lines([result])[-1].split()
    assert words == ["8", "2", "float", "sum", "-1", *["N/A"] * 4, "1.00", "2.00", "3.00", "N/A"]


@cases(
    "report",
    [
        None,
        7,
        [],
        {},
        {"results": 7},
        {"results": [7]},
        {"results": [{**ROW, "size": -1}]},
        {"results": [{**ROW, "in_place": {**HALF, "time": float("nan")}}]},
        {"results": [{**ROW, "in_place": {**HALF, "bus_bw": 1e300}}]},
        {"results": [{**ROW, "count": 1 << 70}]},
        {"results": [ROW] * 300},
    ],
)
def test_a_report_of_another_form_has_no_results(report):
    """Facts come from nodes, and a node may send anything."""
    assert results_in({"report": report}) == ()
