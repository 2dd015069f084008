"""Runs that wait in SQLite: numbers, bounds, acknowledgements, and a database that cannot be read."""

import sqlite3
from collections.abc import Callable

import pytest

from muster.errors import Unavailable
from muster.model import Finding, Run, Severity, Verdict
from muster_agent.wire import outbox as module
from muster_agent.wire.outbox import MAX_RUN_BYTES, NUMBERS_SKIPPED_AFTER_BOOT, Outbox


def run(check: str = "simulated", id: str = "r", **fields) -> Run:
    return Run(id=id, node="n", check=check, verdict=Verdict.PASS, started_at=1.0, duration_s=0.5, **fields)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "outbox.db"


@pytest.fixture
def opened(path):
    """Opens outboxes and closes them at the end."""
    boxes: list[Outbox] = []

    def make(limit: int = 100, boot: str = "boot-1") -> Outbox:
        boxes.append(Outbox(path, limit, boot))
        return boxes[-1]

    yield make
    for box in boxes:
        box.close()


Opened = Callable[..., Outbox]


def kept(outbox: Outbox, *runs: Run) -> Run:
    """The last of the runs as the outbox keeps it."""
    *_, last = [outbox.append(one) for one in runs]
    assert last
    return last


def runs_of(outbox: Outbox) -> list[Run]:
    """All runs as the coordinator reads them."""
    return [Run.model_validate_json(one.body) for one in outbox.pending(0, outbox.last, 1000, 1 << 30)]


def pending(outbox: Outbox, after: int = 0, limit: int = 1000, limit_bytes: int = 1 << 30) -> list[int]:
    return [one.seq for one in outbox.pending(after, outbox.last, limit, limit_bytes)]


def test_runs_are_numbered_and_come_back_as_they_were(opened: Opened):
    """From one, in the order of their reports."""
    outbox = opened()
    first, second = run(id="a", metrics={"x": 1.5}), run(id="b")
    assert outbox.append(first) == first.model_copy(update={"seq": 1})
    assert outbox.append(second) == second.model_copy(update={"seq": 2})
    assert runs_of(outbox) == [first.model_copy(update={"seq": 1}), second.model_copy(update={"seq": 2})]


def test_runs_of_an_earlier_process_come_back_as_they_were(opened: Opened):
    """Also from a version that kept a number in each run."""
    outbox = opened()
    outbox.append(run(id="a", metrics={"x": 1.5}))
    outbox._database.execute("UPDATE run SET body = ?", (run(id="a", metrics={"x": 1.5}).model_dump_json(),))
    outbox._database.commit()
    outbox.close()
    assert runs_of(opened()) == [run(id="a", metrics={"x": 1.5}, seq=1)]


def test_what_is_kept_outlives_the_agent(opened: Opened):
    """Stream, runs and numbers go on after a restart."""
    before = opened()
    before.append(run())
    stream = before.stream
    before.close()
    after = opened()
    assert after.stream == stream
    assert kept(after, run()).seq == 2
    assert pending(after) == [1, 2]


def test_the_age_is_that_of_the_oldest_run_that_waits(opened: Opened, path):
    """Whatever else is in a damaged database."""
    outbox = opened()
    assert outbox.oldest_began_s_ago(100.0) == 0.0
    kept(outbox, run(id="a"), run(id="b").model_copy(update={"started_at": 91.0}))
    assert outbox.oldest_began_s_ago(100.0) == 99.0
    assert outbox.oldest_began_s_ago(0.5) == 0.0, "the clock was set back"
    outbox.acknowledge(outbox.stream, 1)
    assert outbox.oldest_began_s_ago(100.0) == 9.0
    for damaged in ("garbage", "{}"):
        with sqlite3.connect(path) as database:
            database.execute("UPDATE run SET body = ?", (damaged,))
        database.close()
        assert outbox.oldest_began_s_ago(100.0) == 0.0


def test_numbers_are_never_given_twice(opened: Opened):
    """A restart changes nothing, even if everything was stored and deleted."""
    outbox = opened()
    outbox.append(run())
    assert outbox.acknowledge(outbox.stream, 1)
    outbox.close()
    assert kept(opened(), run()).seq == 2


def test_after_a_boot_numbering_leaves_room_for_what_was_lost(opened: Opened):
    """A loss of power may have taken rows whose numbers the coordinator knows."""
    outbox = opened(boot="boot-1")
    outbox.append(run())
    outbox.close()
    outbox = opened(boot="boot-2")
    assert kept(outbox, run()).seq == 2 + NUMBERS_SKIPPED_AFTER_BOOT
    outbox.close()
    assert kept(opened(boot="boot-2"), run()).seq == 3 + NUMBERS_SKIPPED_AFTER_BOOT


def test_an_acknowledgement_forgets_up_to_and_including(opened: Opened):
    """Later runs stay, and the report names the last run before them."""
    outbox = opened()
    for _ in range(4):
        outbox.append(run())
    assert outbox.acknowledge(outbox.stream, 2)
    assert pending(outbox) == [3, 4]
    assert (outbox.before(4), outbox.before(3)) == (3, 0)
    assert outbox.kept_through(3) == 1


@pytest.mark.parametrize(("stream", "through"), [("another", 1), (None, 99)])
def test_an_acknowledgement_of_another_stream_or_of_the_future_is_ignored(opened: Opened, stream, through):
    """Nothing is forgotten."""
    outbox = opened()
    outbox.append(run())
    assert not outbox.acknowledge(stream or outbox.stream, through)
    assert pending(outbox) == [1]


def test_an_acknowledgement_that_cannot_be_written_changes_nothing(opened: Opened):
    """The runs are kept and sent again, which harms nobody."""
    outbox = opened()
    outbox.append(run())
    outbox._database.execute("PRAGMA query_only = ON")
    assert not outbox.acknowledge(outbox.stream, 1)
    assert outbox.append(run()) is None
    assert pending(outbox) == [1]


def test_a_batch_is_bounded_by_number_and_by_size(opened: Opened):
    """At least one run is in it, however large."""
    outbox = opened()
    for _ in range(4):
        outbox.append(run(facts={"text": "x" * 1000}))
    assert pending(outbox, limit=3) == [1, 2, 3]
    assert pending(outbox, after=1, limit_bytes=2500) == [2, 3]
    assert pending(outbox, limit_bytes=10) == [1]


def test_a_full_outbox_drops_the_oldest_of_the_check_that_has_most(opened: Opened):
    """Drops are counted by check, and the counts outlive the agent."""
    outbox = opened(limit=10)
    for check in ["rare", *["often"] * 9, "other", "often"]:
        outbox.append(run(check))
    assert [one.check for one in runs_of(outbox)] == ["rare", *["often"] * 7, "other", "often"]
    assert pending(outbox) == [1, *range(4, 13)]
    outbox.close()
    assert opened(limit=10).dropped() == {"often": 2}


def test_the_newest_run_of_each_check_is_never_dropped(opened: Opened):
    """If each run is of another check, more than the limit are kept."""
    outbox = opened(limit=3)
    for number in range(6):
        outbox.append(run(f"check-{number}"))
    assert len(outbox) == 6
    assert outbox.dropped() == {}


@pytest.mark.parametrize("content", [b"this is not a database" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_database_that_cannot_be_read_is_moved_aside(opened: Opened, path, content):
    """The file is kept for inspection, and a new stream begins."""
    path.write_bytes(content)
    outbox = opened()
    assert kept(outbox, run()).seq == 1
    (aside,) = path.parent.glob("outbox.db.unreadable-*")
    assert aside.read_bytes() == content


def test_a_damaged_page_is_found_at_the_start(opened: Opened, path):
    """The file is checked before it is used."""
    outbox = opened(limit=10_000)
    for _ in range(200):
        outbox.append(run(facts={"text": "x" * 500}))
    stream = outbox.stream
    outbox.close()
    damaged = bytearray(path.read_bytes())
    damaged[4096 * 4 : 4096 * 12] = b"\xa5" * 4096 * 8
    path.write_bytes(bytes(damaged))
    outbox = opened()
    assert outbox.stream != stream
    assert len(outbox) == 0


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    """The message names the file."""
    with pytest.raises(Unavailable, match=r"cannot use the outbox .*nowhere"):
        Outbox(tmp_path / "nowhere" / "outbox.db", 10, "boot")


def test_a_run_that_cannot_be_written_counts_as_dropped(opened: Opened, path):
    """The agent goes on; once there is room again, so does the outbox."""
    outbox = opened()
    outbox.append(run("filler", facts={"text": "x" * 20_000}))
    pages = outbox._database.execute("PRAGMA page_count").fetchone()[0]
    outbox._database.execute(f"PRAGMA max_page_count = {pages}")
    while outbox.append(run("gemm", facts={"text": "x" * 20_000})) is not None:
        pass
    assert outbox.dropped() == {"gemm": 1}
    outbox._database.execute("PRAGMA max_page_count = 100000")
    assert outbox.append(run("gemm")) is not None


def test_a_row_that_cannot_be_read_is_dropped(opened: Opened, path):
    """An older version may have written it; the other runs are sent."""
    outbox = opened()
    outbox.append(run("gemm"))
    outbox.append(run())
    with sqlite3.connect(path) as other:
        other.execute("UPDATE run SET body = '{}' WHERE seq = 1")
    other.close()
    outbox.close()
    outbox = opened()
    assert pending(outbox) == [2]
    assert outbox.dropped() == {"gemm": 1}
    assert len(outbox) == 1


def test_a_run_that_is_too_large_is_kept_without_its_measurement(opened: Opened):
    """What it found is kept as far as it fits, with a finding that says so."""
    outbox = opened()
    finding = Finding(code="x.y", summary="s" * 1000, severity=Severity.ERROR, evidence={"text": "x" * 1000})
    large = run(findings=(finding,) * 500, facts={"text": "x" * MAX_RUN_BYTES})
    small = kept(outbox, large)
    assert len(small.model_dump_json()) < MAX_RUN_BYTES
    assert [finding.code for finding in small.findings] == ["run.oversized", *["x.y"] * module.KEPT_FINDINGS]
    assert small.facts == {}
    assert small.verdict is large.verdict


def test_sizes_are_counted_as_they_travel_in_bytes(opened: Opened):
    """A character may take four, and a report that is too large for the wire would be sent again for ever."""
    outbox = opened()
    assert kept(outbox, run(facts={"text": "\N{SNOWMAN}" * (MAX_RUN_BYTES // 2)})).facts == {}
    for _ in range(2):
        outbox.append(run(facts={"text": "\N{SNOWMAN}" * 1000}))
    assert pending(outbox, after=1, limit_bytes=5000) == [2]
