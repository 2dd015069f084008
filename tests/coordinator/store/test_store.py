import threading

import pytest
from sqlalchemy import update
from sqlalchemy.engine.default import DefaultDialect
from tests.coordinator.store.stored_records import START, every_run, make_node, make_run, make_sweep, stored

from muster.errors import Refused
from muster.model import Finding, Severity, Verdict
from muster.references import Reference
from muster_coordinator.model.events import (
    AppendStory,
    EraseReference,
    SaveEvidence,
    SaveGroup,
    SaveNode,
    SaveReference,
    SaveSweep,
    StoreRuns,
)
from muster_coordinator.model.evidence_record import EvidenceRecord
from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.model.references import ReferenceRecord
from muster_coordinator.model.sweep_records import (
    FailedNode,
    GroupRecord,
    GroupState,
    RoundRecord,
    Suspicion,
    SweepState,
)
from muster_coordinator.store import last_runs, stored_sweeps
from muster_coordinator.store.runs_view import RunFilter
from muster_coordinator.store.store import Store
from muster_coordinator.store.tables import SWEEPS


async def test_what_was_written_comes_back_after_a_restart(settings):
    """Nodes, streams, unfinished sweeps and runs are what the next coordinator starts from."""
    store = await Store.open(settings)
    finding = Finding(code="gemm.slow", summary="slow", severity=Severity.ERROR, evidence={"value": 1.5})
    run = make_run(
        1, verdict=Verdict.FAIL, findings=(finding,), metrics={"tflops": 3.0, "each": [1.0, None]}, group="g"
    )
    node = make_node("n1", START)
    await store.write([stored(run), SaveNode(node), SaveSweep(make_sweep("a"))])
    await store.close()

    again = await Store.open(settings)
    saved = await again.saved()
    await again.close()
    assert saved.nodes == (node,)
    assert saved.runs == (run,)
    assert saved.streams == {("n1", "s"): 1}
    assert saved.sweeps == (make_sweep("a"),)


async def test_the_last_ended_sweeps_of_several_nodes_come_back(store, monkeypatch):
    """The oldest first, with what they leave open; not those that run, had one node, or are too many or too old."""
    monkeypatch.setattr(stored_sweeps, "MOST_SWEPT", 2)
    left = Suspicion(node="n1", bad=(("n2",),), good=3)
    end = {"ended_at": START + 9.0, "suspicions": (left,)}
    ended = [make_sweep(name, SweepState.FINISHED, START + at).model_copy(update=end) for at, name in enumerate("abc")]
    alone = make_sweep("alone", SweepState.FINISHED, START + 5).model_copy(update={"nodes": ("n1",), **end})
    await store.write([SaveSweep(sweep) for sweep in (*ended, alone, make_sweep("running", at=START + 6))])
    assert (await store.saved()).swept == tuple(ended[1:])
    much_later = START + (stored_sweeps.SWEPT_DAYS + 1) * stored_sweeps.DAY_S
    late = make_sweep("late", SweepState.ABORTED, much_later).model_copy(update={"ended_at": much_later})
    await store.write([SaveSweep(late)])
    assert [sweep.id for sweep in (await store.saved()).swept] == ["late"]


def make_reference(number: int, **values) -> ReferenceRecord:
    row = Reference(check="gemm", metric="tflops", fail_below=number, source="test", **values)
    return ReferenceRecord(number=number, reference=row)


async def test_references_come_back_in_the_order_of_their_numbers(store):
    """With their conditions as they were; what was erased does not, also not when it was saved in the same batch."""
    first, second = make_reference(2, when={"nodes": {"at_least": 2}, "gpu": ["a", True]}), make_reference(10)
    await store.write([SaveReference(second), SaveReference(make_reference(5)), SaveReference(first)])
    await store.write([EraseReference(5), SaveReference(make_reference(11)), EraseReference(11)])
    assert (await store.saved()).references == (first, second)


async def test_a_run_can_be_read_by_its_id(store):
    """As it was stored; None for one that is not there."""
    await store.write([stored(make_run(1), make_run(2))])
    assert await store.run("n1-2") == make_run(2)
    assert await store.run("n1-3") is None


async def test_runs_are_in_their_place_although_the_clock_of_their_node_was_set(store):
    """What was found while the clock was ahead is not what was found last; the run says what its node has reported."""
    early, late = make_run(1, verdict=Verdict.FAIL), make_run(2)
    ahead = early.model_copy(update={"started_at": early.started_at + 300})
    runs = StoreRuns("n1", "s", 1, (ahead,), behind_s=-300.0)
    await store.write([SaveNode(make_node("n1", START)), runs, stored(late)])
    assert (await store.saved()).runs == (ahead, late)
    assert await every_run(store, 10) == [late.id, early.id]


async def test_no_run_began_after_it_was_stored(store):
    """Whatever its node says: it would stand before those of all others for ever, and never be old."""
    ahead = make_run(1).model_copy(update={"started_at": 200_000_000_000.0})
    later = make_run(2)
    await store.write([StoreRuns("n1", "s", 1, (ahead,), at=later.started_at - 1), stored(later)])
    assert await every_run(store, 10) == [later.id, ahead.id]


async def test_only_the_last_runs_of_each_check_are_restored(store):
    """Of nodes without evidence, eight per check, oldest first; skipped runs and runs in groups push nothing out."""
    await store.write([SaveNode(make_node("n1", START)), SaveNode(make_node("n2", START))])
    await store.write([stored(*(make_run(seq) for seq in range(1, 11)))])
    await store.write([stored(make_run(11, verdict=Verdict.SKIPPED), make_run(12, group="g"))])
    await store.write([stored(make_run(13, check="nvml"))])
    await store.write([stored(make_run(1, node="n2"))])
    saved = await store.saved()
    assert [run.id for run in saved.runs] == ["n2-1", *(f"n1-{seq}" for seq in (3, 4, 5, 6, 7, 8, 9, 10, 12, 13))]
    await store.write([SaveEvidence(EvidenceRecord(node="n1"))])
    assert [run.id for run in (await store.saved()).runs] == ["n2-1"]


async def test_of_what_one_node_has_stored_only_so_much_is_restored(store, monkeypatch):
    """The latest runs, as far as they fit; those of other nodes as ever."""
    monkeypatch.setattr(last_runs, "CHARACTERS_TO_RESTORE", 30_000)
    large = [make_run(seq, check=f"c{seq}", facts={"text": "x" * 9_000}) for seq in range(1, 11)]
    await store.write([stored(*large), stored(make_run(1, node="n2"))])
    await store.write([SaveNode(make_node("n1", START)), SaveNode(make_node("n2", START))])
    assert [run.id for run in (await store.saved()).runs] == ["n2-1", "n1-8", "n1-9", "n1-10"]


async def test_ended_sweeps_are_not_restored(store):
    """Only what still has to be ended or aborted is handed to the fleet."""
    states = [SweepState.PLANNED, SweepState.RUNNING, SweepState.FINISHED, SweepState.ABORTED]
    await store.write([SaveSweep(make_sweep(state.value, state, START + i)) for i, state in enumerate(states)])
    assert [sweep.id for sweep in (await store.saved()).sweeps] == ["planned", "running"]


async def test_when_each_node_was_tested_is_restored(store):
    """By the last sweep that cleared or convicted it, of those in the month before the last one; damaged ones aside."""
    failed = FailedNode(node="n2", code="gemm.slow", confidence=1.0, reasons=())
    sweeps: list[tuple[str, int, dict[str, object]]] = [
        ("old", 0, {"cleared_nodes": ("n3",)}),
        ("first", 31, {"cleared_nodes": ("n1", "n2")}),
        ("second", 32, {"cleared_nodes": ("n1", "unknown"), "failed_nodes": (failed,)}),
        ("aborted", 33, {"inconclusive": ("n1", "n2", "n3")}),
    ]
    for name, day, found in sweeps:
        at = START + day * 86_400
        record = make_sweep(name, SweepState.FINISHED, at).model_copy(update={"ended_at": at + 60.0, **found})
        await store.write([SaveSweep(record)])
    await store.write([SaveNode(make_node(name, START)) for name in ("n1", "n2", "n3")])
    ended = START + 32 * 86_400 + 60.0
    assert (await store.saved()).tested == {"n1": ended, "n2": ended}
    async with store.database.engine.begin() as connection:
        await connection.execute(update(SWEEPS).where(SWEEPS.c.id == "second").values(body="{"))
    before = START + 31 * 86_400 + 60.0
    assert (await store.saved()).tested == {"n1": before, "n2": before}
    assert store.database.unread.count == 1


async def test_a_run_is_stored_once(store):
    """A run that comes again, by id or by number, leaves what is stored as it is and hurts nothing else."""
    await store.write([stored(make_run(1))])
    same_number = make_run(1).model_copy(update={"id": "other"})
    same_id = make_run(1, verdict=Verdict.FAIL).model_copy(update={"seq": 7})
    await store.write([stored(same_number), stored(same_id), stored(make_run(2))])
    page = await store.runs(RunFilter(), 10, None)
    assert [(run.id, run.verdict) for run in page.items] == [("n1-2", Verdict.PASS), ("n1-1", Verdict.PASS)]


async def test_a_new_outbox_may_count_from_one_again(store):
    """The same numbers in another stream are other runs."""
    await store.write([stored(make_run(1))])
    await store.write([stored(make_run(1).model_copy(update={"id": "second"}), stream="t")])
    assert len((await store.runs(RunFilter(), 10, None)).items) == 2
    assert (await store.saved()).streams == {("n1", "s"): 1, ("n1", "t"): 1}


async def test_the_last_state_in_a_batch_wins(store):
    """Records that are written over several times in one batch end as the last of them."""
    await store.write([SaveNode(make_node("n1", START)), SaveNode(make_node("n1", START + 5))])
    await store.write([SaveSweep(make_sweep("a")), SaveSweep(make_sweep("a", SweepState.FINISHED))])
    await store.write([stored(make_run(1)), stored(make_run(2))])
    saved = await store.saved()
    assert saved.nodes[0].last_seen == START + 5
    assert (await store.sweep("a")).state == SweepState.FINISHED
    assert saved.streams == {("n1", "s"): 2}


async def test_a_batch_is_written_as_a_whole_or_not_at_all(store):
    """When one row cannot be written, none of its batch is."""
    broken = make_run(2).model_copy(update={"duration_s": None})
    with pytest.raises(Exception, match="duration_s"):
        await store.write([stored(make_run(1)), SaveNode(make_node("n1", START)), stored(broken)])
    assert (await store.runs(RunFilter(), 10, None)).items == ()
    assert (await store.saved()).nodes == ()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["n1-5", "n1-4", "n1-3", "n2-2", "n1-1"]),
        ({"node": "n2"}, ["n2-2"]),
        ({"check": "nvml"}, ["n1-5", "n1-4"]),
        ({"verdict": Verdict.FAIL}, ["n1-4", "n2-2"]),
        ({"since": START + 4}, ["n1-5", "n1-4"]),
        ({"node": "n1", "verdict": Verdict.FAIL, "since": START}, ["n1-4"]),
        ({"node": "absent"}, []),
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 5, 100])
async def test_runs_are_filtered_and_paged(store, wanted, found, limit):
    """Every page size gives the same runs in the same order, the latest first."""
    await store.write([stored(make_run(1)), stored(make_run(2, node="n2", verdict=Verdict.FAIL)), stored(make_run(3))])
    await store.write([stored(make_run(4, check="nvml", verdict=Verdict.FAIL), make_run(5, check="nvml"))])
    assert await every_run(store, limit, **wanted) == found


async def test_runs_that_started_together_are_paged_without_loss(store):
    """The id decides between runs with the same start."""
    await store.write([stored(*(make_run(seq).model_copy(update={"started_at": START}) for seq in range(1, 8)))])
    assert sorted(await every_run(store, 3)) == [f"n1-{seq}" for seq in range(1, 8)]


async def test_sweeps_are_listed_latest_first(store):
    """Sweeps are paged as runs are."""
    await store.write([SaveSweep(make_sweep(name, at=START + at)) for at, name in enumerate("abc")])
    first = await store.sweeps(2, None)
    assert [sweep.id for sweep in first.items] == ["c", "b"]
    second = await store.sweeps(2, first.next_cursor)
    assert [sweep.id for sweep in second.items] == ["a"]
    assert second.next_cursor is None


async def test_sweeps_are_found_by_the_beginning_of_their_id(store):
    """In alphabetical order, with capitals told from small letters; no character has a special meaning."""
    await store.write([SaveSweep(make_sweep(name)) for name in ("ab", "aB", "a_c", "abc", "a%d")])
    assert await store.sweep_ids("ab", 10) == ["ab", "abc"]
    assert await store.sweep_ids("a", 2) == ["a%d", "aB"]
    assert await store.sweep_ids("a_", 10) == ["a_c"]
    assert await store.sweep_ids("%", 10) == []


def make_round(groups: int) -> RoundRecord:
    """A round of one moment, as all groups that are formed at once have it."""
    records = (
        GroupRecord(id=f"a-1.{number}", members=("n1", "n2"), state=GroupState.ENDED, started_at=START)
        for number in range(1, groups + 1)
    )
    return RoundRecord(number=1, groups=tuple(records))


async def test_groups_come_back_in_the_order_in_which_they_were_formed(store):
    """The tenth of one moment after the ninth."""
    stage = make_round(12)
    outline = stage.model_copy(update={"groups": ()})
    sweep = make_sweep("a").model_copy(update={"rounds": (outline,)})
    await store.write([SaveSweep(sweep), *(SaveGroup("a", 1, group) for group in reversed(stage.groups))])
    assert (await store.sweep("a")).rounds == (stage,)
    assert (await store.saved()).sweeps[0].rounds == (stage,)


async def test_the_coordinator_goes_on_while_a_sweep_is_read(store, monkeypatch):
    """What thousands of nodes have reported takes seconds to be read."""
    read, threads = stored_sweeps._read, []

    def noted(*given):
        threads.append(threading.get_ident())
        return read(*given)

    monkeypatch.setattr(stored_sweeps, "_read", noted)
    await store.write([SaveSweep(make_sweep("a"))])
    assert await store.sweep("a") == make_sweep("a")
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


async def test_a_sweep_that_holds_its_groups_itself_keeps_them(store):
    """As those do that were stored before groups had a table."""
    sweep = make_sweep("a").model_copy(update={"rounds": (make_round(2),)})
    await store.write([SaveSweep(sweep)])
    assert await store.sweep("a") == sweep


async def test_a_story_keeps_its_order(store):
    """Steps that were told at the same instant stay in the order in which they were told."""
    await store.write(
        [
            AppendStory(StoryEntry(id=f"{9 - n}", at=START, node="n1" if n else "n2", kind="health", text=str(n)))
            for n in range(5)
        ]
    )
    page = await store.story("n1", 3, None)
    assert [entry.text for entry in page.items] == ["4", "3", "2"]
    assert [entry.text for entry in (await store.story("n1", 3, page.next_cursor)).items] == ["1"]


@pytest.mark.parametrize("cursor", ["", "x", "!!!", "bnVsbA", "WzFd", "WyJhIiwiYiJd", "W3RydWUsImEiXQ", "\xff"])
async def test_a_cursor_that_is_none_is_refused(store, cursor):
    """Anything but a cursor of the same list is refused."""
    with pytest.raises(Refused, match="cursor"):
        await store.runs(RunFilter(), 10, cursor)


@pytest.mark.parametrize(("now", "later"), [(1000.7, 2000.0), (1000.0, 1000.0), (1000.0, 3.0)])
async def test_epochs_rise_even_when_the_clock_goes_back(store, now, later):
    """The first epoch is the clock's; the next is higher whatever the clock says."""
    assert await store.begin_epoch(now, "http://a") == 1000
    assert await store.begin_epoch(later, "http://a") == max(1001, int(later))


async def test_a_batch_is_one_commit(store, monkeypatch):
    """A commit for each run would cost far more."""
    commits = []
    monkeypatch.setattr(DefaultDialect, "do_commit", lambda _, connection: commits.append(connection.commit()))
    await store.write([stored(make_run(seq)) for seq in range(1, 101)])
    assert len(commits) == 1
