"""Blocks of runs and of summaries come back from their bytes as they were."""

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from muster.model import Run, Verdict
from muster_coordinator.model.run_shape import SAME, facts_beside, metric_numbers, shape_of
from muster_coordinator.store.columns import PackedColumns, head_of, integers_of, packed, packed_integers
from muster_coordinator.store.series import FullBlock, QuietNumbers, packed_runs, packed_summaries, summaries_of
from muster_coordinator.store.summaries import joined, summarised

AT = 1_800_000_000_000
"""The beginning of an hour in milliseconds."""

FLOATS = st.one_of(
    st.none(),
    st.floats(-1e30, 1e30),
    st.integers(-500, 500).map(lambda value: value / 8),
    st.integers(0, 10**6).map(float),
    st.sampled_from([0.0, -0.0, 1e-7, 1e17, 70.5]),
)
INTEGERS = st.one_of(st.integers(-9, 9), st.integers(-(1 << 63), (1 << 63) - 1))
TEXTS = st.sampled_from(["", "a", "a:1,b", "[5]", 'say "7"', "é"])

TOKENS = st.one_of(
    st.sampled_from(
        ["null", "0", "-0", "0.0", "-0.0", "1e-05", "", "00", "1.50", "-3", "12.25", "999999999999999999.5"]
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(1 << 70), 1 << 70).map(str),
    st.integers(0, 5000).map(lambda value: str(value / 1000)),
)


@given(st.integers(1, 30).flatmap(lambda rows: st.lists(st.lists(TOKENS, min_size=rows, max_size=rows), max_size=5)))
def test_numbers_come_back_to_the_letter(columns):
    """Whatever their form, and whichever column is like its start."""
    starts = [column[0] for column in columns]
    head, headers, data = head_of(packed({"x": 1}, columns, starts))
    rows = len(columns[0]) if columns else 0
    found = PackedColumns(headers, data, rows, starts)
    assert head == {"x": 1}
    assert [[column.text(row) for row in range(rows)] for column in found] == columns


@given(st.lists(st.integers(-(1 << 60), 1 << 60), min_size=1))
def test_whole_numbers_come_back(values):
    """Beside another column of the same length."""
    both = [values, [number for number, _ in enumerate(values)]]
    assert [*integers_of(packed_integers(both), len(values))] == both


def test_a_column_that_is_like_its_start_takes_no_room():
    """However long it is: most of what a healthy node reports never changes."""
    column = ["41.0"] * 1000
    assert len(packed({}, [column] * 100, ["41.0"] * 100)) - len(packed({}, [], [])) < 20


@st.composite
def alike(draw):
    """Runs that differ in numbers only, and are not in the order of time."""
    lengths = draw(st.dictionaries(st.sampled_from("abcd"), st.one_of(st.none(), st.integers(0, 3)), max_size=4))
    text = draw(TEXTS)
    runs = []
    for seq in range(1, draw(st.integers(1, 12)) + 1):
        metrics = {
            name: draw(FLOATS) if length is None else [draw(FLOATS) for _ in range(length)]
            for name, length in lengths.items()
        }
        facts = {
            "text": text,
            "count": draw(st.integers(0, 2)),
            "deep": [{"share": draw(st.floats(0, 1)), "big": draw(INTEGERS)}],
        }
        at_ms = AT + draw(st.integers(0, 7_200_000))
        runs.append(make_run(seq, at_ms, metrics, facts, draw(st.integers(0, 10**6)) / 1e6))
    return runs


def make_run(seq, at_ms, metrics, facts, duration_s=0.5) -> Run:
    return Run(
        id=f"k.{seq}",
        node="n",
        check="nvml",
        verdict=Verdict.PASS,
        metrics=metrics,
        facts=facts,
        params={"p": 1},
        started_at=at_ms / 1000,
        duration_s=duration_s,
        seq=seq,
        cause="schedule",
    )


def numbers(run: Run, base: Run) -> QuietNumbers:
    facts = facts_beside(run, shape_of(run), shape_of(base))
    assert facts is not None
    assert shape_of(run).outline == shape_of(base).outline
    return QuietNumbers(run.seq, round(run.started_at * 1000), 0, run.duration_s, metric_numbers(run.metrics), facts)


def packed_block(runs) -> FullBlock:
    base = runs[0]
    ordered = sorted(runs, key=lambda run: run.started_at)
    times, body = packed_runs(from_json(base.model_dump_json()), [numbers(run, base) for run in ordered])
    return FullBlock.read("k", times, body, len(runs))


@given(alike())
def test_runs_come_back_as_they_were(runs):
    """With every number in metrics and facts, None included, from the numbers of any of them."""
    block = packed_block(runs)
    found = {run.id: run for run in (block.run(row) for row in range(len(runs)))}
    assert found == {run.id: run for run in runs}
    assert {run.id: run.model_dump_json() for run in found.values()} == {run.id: run.model_dump_json() for run in runs}


@given(alike(), st.sampled_from([300, 3600]))
def test_summaries_of_a_block_have_the_figures_of_its_runs(runs, resolution_s):
    """Count and extremes of each metric and device, exactly, and the median; the order of arrival does not matter."""
    summaries = packed_block(runs).summaries(resolution_s)
    assert summaries == packed_block([runs[0], *reversed(runs[1:])]).summaries(resolution_s)
    assert sum(sum(each.verdicts.values()) for each in summaries) == len(runs)
    for summary in summaries:
        slot = summary.started_at // resolution_s
        same = [run for run in runs if run.started_at // resolution_s == slot]
        for metric, devices in summary.metrics.items():
            for device, figures in devices.items():
                values = [
                    value
                    for run in same
                    if (value := run.metrics[metric] if device == "" else run.metrics[metric][int(device)]) is not None
                ]
                assert (figures.count, figures.least, figures.most) == (len(values), min(values), max(values))
                assert figures.median == median(values)


@given(alike(), st.sampled_from([300, 3600]))
def test_summaries_come_back_as_they_were(runs, resolution_s):
    """From their bytes, with gaps where nothing was measured."""
    summaries = packed_block(runs).summaries(resolution_s)
    times, body = packed_summaries(summaries)
    assert summaries_of("n", "nvml", times, body, len(summaries)) == summaries


@given(alike())
def test_summaries_of_summaries_keep_counts_and_extremes(runs):
    """An hour of five-minute summaries has the extremes of the hour, and a median between them."""
    block = packed_block(runs)
    hours = {each.started_at // 3600: each for each in joined(block.summaries(300), 3600)}
    exact = {each.started_at // 3600: each for each in block.summaries(3600)}
    assert hours.keys() == exact.keys()
    for hour, summary in hours.items():
        assert summary.verdicts == exact[hour].verdicts
        assert summary.metrics.keys() == exact[hour].metrics.keys()
        for metric, devices in summary.metrics.items():
            for device, figures in devices.items():
                other = exact[hour].metrics[metric][device]
                assert (figures.count, figures.least, figures.most) == (other.count, other.least, other.most)
                assert figures.least <= figures.median <= figures.most


def test_summaries_are_those_of_whole_runs():
    """A block downsamples as whole runs do."""
    runs = [
        make_run(seq, AT + seq * 60_000, {"each": [1.0 * seq, None], "one": 0.5}, {"devices": [4, 5]})
        for seq in (1, 2, 90)
    ]
    assert packed_block(runs).summaries(3600) == summarised(runs)


@pytest.mark.parametrize(
    "other",
    [
        {"verdict": Verdict.SKIPPED},
        {"simulated": True},
        {"params": {"p": 2}},
        {"metrics": {"a": 1.0}},
        {"metrics": {"a": [1.0, 2.0, 3.0]}},
        {"metrics": {"b": [1.0, 2.0]}},
        {"facts": {"name": "other", "free": 0.5, "count": 1}},
        {"facts": {"name": "x", "free": 1, "count": 1}},
        {"facts": {"name": "x", "free": 0.5, "count": 1, "more": 2}},
        {"facts": {"name": "x", "free": None, "count": 1}},
    ],
)
def test_runs_that_differ_in_more_than_numbers_are_not_alike(other):
    """In verdict, parameters, names or lengths of metrics, or in facts."""
    run = make_run(1, AT, {"a": [1.0, None]}, {"name": "x", "free": 0.5, "count": 1})
    changed = run.model_copy(update=other)
    is_other = shape_of(changed).outline != shape_of(run).outline
    assert is_other or facts_beside(changed, shape_of(changed), shape_of(run)) is None


def test_facts_that_name_devices_are_no_numbers():
    """Otherwise the numbers of one device would be shown as those of another."""
    run = make_run(1, AT, {"a": [1.0, 2.0]}, {"devices": [4, 5]})
    other = run.model_copy(update={"facts": {"devices": [4, 6]}})
    assert shape_of(other).outline != shape_of(run).outline


def test_the_same_facts_are_not_stored_again():
    """They are most of what a run takes."""
    run = make_run(1, AT, {"a": 1.0}, {"name": "x", "free": 0.5})
    assert facts_beside(run, shape_of(run), shape_of(run)) == SAME
