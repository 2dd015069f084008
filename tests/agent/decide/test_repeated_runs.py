"""Which runs travel whole, and which as repeats of one that is stored."""

import pytest

from muster.model import Run, Verdict
from muster.wire.repeats import MOST_BASES, MOST_BYTES
from muster_agent.decide.repeated_runs import CALM_S, MAX_PAUSE_S, PAUSE_S, RepeatedRuns


def body(seq: int, **fields) -> tuple[int, str]:
    """A scheduled run as the outbox keeps it."""
    usual = {"cause": "schedule", "metrics": {"a": float(seq)}, "facts": {"name": "x", "free": seq / 8}}
    made = Run(
        id=f"r{seq}",
        node="n",
        **{"check": "nvml", "verdict": Verdict.PASS, "started_at": float(seq), "duration_s": 0.5, **usual, **fields},
        seq=seq,
    )
    return seq, made.model_dump_json()


def sent(runs: RepeatedRuns, *bodies: tuple[int, str], now: float = 0.0) -> str:
    """W for each whole run, or the number that a repeat is like."""
    found = runs.split(bodies, sent_at=1000.0, now=now)
    like = {each["seq"]: str(each["like"]) for each in found.repeats}
    return " ".join(like.get(seq, "W") for seq, _ in bodies)


def with_base(**fields) -> RepeatedRuns:
    """Run 1 was sent whole and is stored."""
    runs = RepeatedRuns()
    assert sent(runs, body(1, **fields)) == "W"
    runs.stored(1)
    return runs


def test_a_run_is_a_repeat_once_one_like_it_is_stored_or_goes_before_it() -> None:
    """Of another report that is not acknowledged, the coordinator may have nothing."""
    runs = RepeatedRuns()
    assert sent(runs, body(1), body(2), body(3)) == "W 1 1"
    assert sent(runs, body(4), body(5)) == "W 4"
    runs.stored(1)
    assert sent(runs, body(6), body(7)) == "1 1"
    runs.stored(4)
    assert sent(runs, body(8)) == "4"


def test_a_repeat_has_the_numbers_only() -> None:
    """Whole numbers without a fraction, and facts only if they differ."""
    runs = with_base(metrics={"a": [1.0, None], "b": 0.5}, facts={"free": 5})
    (same,) = runs.split([body(2, metrics={"a": [3.0, None], "b": 0.25}, facts={"free": 5})], 10.0, 0.0).repeats
    assert same == {"seq": 2, "like": 1, "age_ms": 8000, "duration_s": 0.5, "metrics": [3, None, 0.25]}
    assert isinstance(same["metrics"][0], int)
    (other,) = runs.split([body(3, metrics={"a": [3.0, None], "b": 0.25}, facts={"free": 6})], 10.0, 0.0).repeats
    assert other["facts"] == (6,)


@pytest.mark.parametrize(
    "other",
    [
        {"cause": "r-1"},
        {"cause": None},
        {"group": "g"},
        {"verdict": Verdict.WARN},
        {"verdict": Verdict.SKIPPED},
        {"check": "fabric"},
        {"facts": {"name": "y", "free": 0.5}},
        {"facts": {"name": "x", "free": 1}},
        {"facts": {"name": "x", "free": True}},
        {"facts": {"name": "x", "free": 0.5, "fingerprints": {}}},
        {"metrics": {"a": [1.0]}},
        {"metrics": {"b": 1.0}},
        {"params": {"size": 2}},
        {"facts": {"name": "x" * MOST_BYTES, "free": 0.5}},
    ],
)
def test_a_run_that_says_more_is_whole(other) -> None:
    """In what asked for it, what it found, or the names of anything; and so is a large one."""
    assert sent(with_base(), body(2, **other)) == "W"


def test_only_the_latest_whole_runs_are_bases() -> None:
    """The coordinator keeps no more."""
    runs = RepeatedRuns()
    many = [body(seq, metrics={f"m{seq}": 1.0}) for seq in range(1, MOST_BASES + 2)]
    assert sent(runs, *many) == " ".join("W" * len(many))
    runs.stored(len(many))
    assert sent(runs, body(8, metrics={"m1": 2.0})) == "W"
    assert sent(runs, body(9, metrics={"m3": 2.0})) == "3"


def test_a_run_that_is_sent_again_is_no_other_base() -> None:
    """Nor is it its own."""
    runs = RepeatedRuns()
    for _ in range(MOST_BASES + 1):
        assert sent(runs, body(1), body(2)) == "W 1"
    runs.stored(1)
    assert sent(runs, body(1), body(2), body(3)) == "W 1 1"
    runs.stored(3)
    assert sent(runs, body(4)) == "1"


def test_after_a_gap_no_earlier_run_is_a_base_until_it_is_sent_again() -> None:
    """The coordinator may lack the base."""
    runs = with_base()
    assert sent(runs, body(2)) == "1"
    assert runs.refused(0.0)
    assert not runs.refused(0.0)
    assert sent(runs, body(2), body(3)) == "W 2"
    runs.stored(2)
    assert sent(runs, body(4)) == "2"


def test_a_gap_before_any_repeat_is_about_something_else() -> None:
    """Bases stay."""
    runs = with_base()
    assert not runs.refused(0.0)
    assert sent(runs, body(2)) == "1"


def refuse(runs: RepeatedRuns, seq: int, now: float) -> int:
    """Makes a base, repeats it, and is refused. Returns the next number."""
    assert sent(runs, body(seq), now=now) == "W"
    runs.stored(seq)
    assert sent(runs, body(seq + 1), now=now) == str(seq)
    assert runs.refused(now)
    return seq + 2


def test_whoever_is_refused_again_pauses_longer_each_time() -> None:
    """A coordinator without room gets each run once."""
    runs, seq, now = RepeatedRuns(), 1, 0.0
    seq = refuse(runs, seq, now)
    for pause_s in (0.0, PAUSE_S, 2 * PAUSE_S, 4 * PAUSE_S):
        if pause_s:
            assert sent(runs, body(seq), now=now + pause_s - 1) == "W"
            runs.stored(seq)
            assert sent(runs, body(seq + 1), now=now + pause_s - 1) == "W"
            seq += 2
        now += pause_s
        seq = refuse(runs, seq, now)
    for _ in range(10):
        now += MAX_PAUSE_S
        seq = refuse(runs, seq, now)
    assert sent(runs, body(seq), body(seq + 1), now=now + MAX_PAUSE_S - 1) == "W W"


def test_a_refusal_after_a_calm_time_is_the_first() -> None:
    """Nobody pays for a restart of last week."""
    runs = RepeatedRuns()
    seq = refuse(runs, refuse(runs, 1, 0.0), 0.0)
    refuse(runs, refuse(runs, seq, CALM_S + 1), CALM_S + 1)


def test_another_leader_has_no_bases() -> None:
    """It counts as no refusal."""
    runs = with_base()
    runs.start_over()
    assert sent(runs, body(2)) == "W"
