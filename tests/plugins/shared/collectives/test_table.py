"""Tables of collectives: what is judged of them, and the forms that nccl-tests has given them."""

import json

import pytest

from muster_plugins.checks.nccl_tests.output import parse_json, parse_text
from muster_plugins.shared.collectives.table import (
    SizeRow,
    curves,
    expected_peak,
    facts,
    metrics,
    peaks,
    report,
    text_table,
)

GIB = 1 << 30


def row(size, busbw, time_us=10.0, wrong=0):
    return SizeRow(
        size_bytes=size,
        count=size // 4,
        redop="sum",
        root=-1,
        time_us=time_us,
        algbw_gbps=busbw / 2,
        busbw_gbps=busbw,
        wrong=wrong,
    )


SWEEP = [
    row(512, 0.1, 40.0),
    row(1024, 0.2, 48.0),
    row(2 << 20, 20.0),
    row(GIB, 330.0),
    row(2 * GIB, 350.0),
    row(4 * GIB, 340.0),
]


def test_bandwidth_is_that_of_the_large_messages_and_latency_of_the_small_ones():
    """The mean over all sizes, 173 here, would be half of a healthy link's bandwidth."""
    assert metrics(SWEEP, 16, None) == {
        "algbw_gbps": 170.0,
        "busbw_gbps": 340.0,
        "latency_us": 44.0,
        "wrong_elements": 0.0,
    }
    assert facts(SWEEP) == {"size_bytes": GIB}


def test_without_large_messages_the_largest_is_judged():
    """The size in the facts shows that references for large messages do not apply."""
    assert metrics(SWEEP[:3], 16, None)["busbw_gbps"] == 20.0
    assert facts(SWEEP[:3]) == {"size_bytes": 2 << 20}


def test_one_rank_has_no_bandwidth():
    """It sends nothing: on an H200, NCCL was done with a GiB in 1.3 us."""
    assert metrics([row(GIB, 0.0)], 1, 400.0).keys() == {"wrong_elements"}


def test_wrong_elements_count_over_all_sizes_and_are_not_invented():
    """If nothing was checked, no number of wrong elements is reported."""
    assert metrics([row(8, 1.0, wrong=2), row(16, 1.0, wrong=3)], 2, None)["wrong_elements"] == 5.0
    assert "wrong_elements" not in metrics([row(8, 1.0, wrong=None)], 2, None)


def test_efficiency_is_measured_against_the_peak():
    """As a share."""
    assert metrics(SWEEP, 16, 400.0)["efficiency"] == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("other", "peak"),
    [
        ({}, 480.0),
        ({"collective": "all_gather"}, 361.0),
        ({"nodes": 2}, None),
        ({"gpu_model": "NVIDIA H200 (simulated)"}, None),
    ],
)
def test_a_peak_is_for_the_machine_that_it_was_measured_on(other, peak):
    """A peak does not apply to other machines."""
    known = {"collective": "all_reduce", "nodes": 1, "world_size": 8, "gpu_model": "NVIDIA H200", "backend": "nccl"}
    assert expected_peak(known | other) == peak


def test_every_peak_has_conditions():
    """A peak without conditions would apply to every machine."""
    assert all(len(peak.when) >= 3 for peak in peaks())


def test_the_table_is_the_one_of_nccl_tests():
    """The same columns in the same places, and its summary."""
    assert text_table([row(1024, 0.2, 48.1), row(GIB, 352.5, 3046.0, wrong=2)]).splitlines() == [
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)        ",
        "        1024           256     float     sum      -1    48.10    0.10    0.20       0",
        "  1073741824     268435456     float     sum      -1   3046.0  176.25  352.50       2",
        "# Out of bounds values : 2 FAILED",
        "# Avg bus bandwidth    : 176.35",
    ]


def test_efficiency_stands_behind_each_row_where_a_peak_is_known():
    """Readers of nccl-tests' table still find their columns."""
    table = text_table(SWEEP, 400.0)
    assert [line.split()[-1] for line in table.splitlines()[:3]] == ["effic", "(%)", "0.0"]
    assert [line.split()[-1] for line in table.splitlines()[5:8]] == ["82.5", "87.5", "85.0"]
    assert [(each.busbw_gbps, each.wrong) for each in parse_text(table).rows] == [
        (each.busbw_gbps, 0) for each in SWEEP
    ]


def test_several_sizes_make_a_curve():
    """A single size makes no curve."""
    (curve,) = curves(SWEEP)
    assert isinstance(curve, dict)
    assert curve["x"] == [512, 1024, 2 << 20, GIB, 2 * GIB, 4 * GIB]
    assert curve["y"] == [0.1, 0.2, 20.0, 330.0, 350.0, 340.0]
    assert curves(SWEEP[:1]) == []


def test_the_report_has_the_keys_of_nccl_tests():
    """The report has the booleans as strings, and no environment."""
    written = report([row(8, 1.0, wrong=1)], {"iterations": 3})
    assert written == {
        "config": {"iterations": 3},
        "results": [
            {
                "size": 8,
                "count": 2,
                "type": "float",
                "redop": "sum",
                "root": "-1",
                "out_of_place": {"time": 10.0, "alg_bw": 0.5, "bus_bw": 1.0, "nwrong": 1},
                "in_place": None,
            }
        ],
        "out_of_bounds": {"count": 1, "okay": "false"},
        "average_bus_bandwidth": {"bandwidth": 1.0, "okay": "unchecked"},
    }
    assert parse_json(json.dumps(report(SWEEP, {}))).rows == SWEEP
