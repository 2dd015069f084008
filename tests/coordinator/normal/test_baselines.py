"""What the coordinator takes for normal, and whom it finds out of line."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.coordinator.normal.measured_fleet import Fleet, Round, gemm
from tests.lots import seeds

from muster.check import Worse
from muster.errors import Refused
from muster.model import Device, Run, Verdict
from muster_coordinator.model.baseline_commands import EraseBaseline, SaveBaseline, SaveLevels
from muster_coordinator.model.baselines import LevelsRecord
from muster_coordinator.normal import baselines
from muster_coordinator.normal.baselines import Baselines
from muster_coordinator.normal.founders import MOST_ALONE
from muster_coordinator.normal.normality import EARLIER_RUNS, SAME_TIME_S, Level, is_crowd, level_of, too_bad
from muster_coordinator.normal.stored_comparisons import StoredComparisons


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


@pytest.mark.parametrize("seed", seeds(1))
def test_noise_convicts_nobody(seed: int) -> None:
    """500 nodes whose values differ by 2 %, and as much from run to run: no finding in a dozen rounds."""
    fleet = Fleet()
    fleet.rounds(12, Round(seed, 500, 0.02))
    assert fleet.ever == set()
    assert fleet.baselines.findings() == ()
    assert fleet.view.anchor.centre == pytest.approx(700, rel=0.01)


def test_nine_of_ten_devices_are_between_low_and_high(fleet: Fleet) -> None:
    """Of 100 devices, five are below and five above."""
    fleet.rounds(3, [gemm(f"n{number}", float(number)) for number in range(100)])
    assert (fleet.view.low, fleet.view.centre, fleet.view.high) == (5.0, 50.0, 94.0)


def test_a_node_has_the_baselines_that_it_was_last_compared_with(fleet: Fleet) -> None:
    """Of each check and metric, the one under its latest conditions."""
    fleet.measure(gemm("a", 1.0, facts={"shape": [1]}))
    fleet.measure(gemm("a", 1.0, metric="step_time_s"))
    fleet.measure(gemm("a", 2.0, facts={"shape": [2]}))
    fleet.measure(gemm("b", 3.0, facts={"shape": [3]}))
    found = {view.metric: view.when.get("shape") for view in fleet.baselines.of_node("a")}
    assert found == {"tflops": [2], "step_time_s": None}
    assert fleet.baselines.of_node("c") == []


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize(("nodes", "noise", "rounds"), [(100, 0.05, 20), (8, 0.08, 200), (8, 0.02, 200)])
def test_what_is_noisy_or_rare_convicts_nobody(seed: int, nodes: int, noise: float, rounds: int) -> None:
    """Neither much noise nor a few devices that are watched for long look like drift or a shift."""
    fleet = Fleet()
    source = Round(seed, nodes, noise)
    for _ in range(rounds):
        fleet.rounds(1, source)
        assert fleet.baselines.findings() == ()
    assert fleet.ever == set()


def test_one_node_replaces_no_baseline_of_others() -> None:
    """However many parameters it invents: shared baselines stay, and the node loses its own oldest ones."""
    fleet = Fleet()
    fleet.rounds(3, Round(1, 100, 0.02))
    for number in range(2 * baselines.MAX_BASELINES):
        fleet.measure(gemm("liar", 700.0, number=number, params={"made_up": number}))
    views = fleet.baselines.views()
    assert [view.nodes for view in views if view.nodes > 1] == [100]
    assert len(views) == 1 + MOST_ALONE
    assert len(fleet.baselines) == len(views)


@pytest.mark.parametrize("seed", seeds(1))
def test_the_one_slow_node_is_found(seed: int) -> None:
    """15 % below the others, in the midst of noise, from its third run on."""
    fleet = Fleet()
    fleet.rounds(4, Round(seed, 100, 0.02, {"n42": 0.85}))
    assert fleet.against == {"n42": [("baseline.outlier", 0), ("baseline.outlier", 1)]}
    assert fleet.view.out_of_line == ("n42",)


@pytest.mark.parametrize("seed", seeds(1))
def test_a_fleet_that_gets_worse_is_a_shift_and_no_storm(seed: int) -> None:
    """60 % of all nodes become 15 % slower at once: one finding for the fleet, none that stands against a node."""
    fleet = Fleet()
    fleet.rounds(4, Round(seed, 200, 0.02))
    slow = {f"n{number}": 0.85 for number in range(120)}
    fleet.rounds(5, Round(seed + 100, 200, 0.02, slow))
    assert fleet.against == {}
    (finding,) = fleet.baselines.findings()
    assert (finding.code, finding.check) == ("baseline.shift", "gemm")
    assert fleet.view.shift == finding
    assert fleet.view.anchor.centre == pytest.approx(700, rel=0.02)
    assert len(fleet.view.out_of_line) >= 100
    fleet.rounds(4, Round(seed + 200, 200, 0.02))
    assert fleet.baselines.findings() == ()


def test_a_bad_fleet_does_not_teach_that_bad_is_normal(fleet: Fleet) -> None:
    """However long all are worse, the anchor stays; only an operator says that this is normal."""
    fleet.rounds(4, Round(1, 20, 0.01))
    everyone = {f"n{number}": 0.85 for number in range(20)}
    fleet.rounds(30, Round(2, 20, 0.01, everyone))
    assert fleet.view.anchor.centre == pytest.approx(700, rel=0.02)
    assert fleet.view.shift is not None
    reset = fleet.baselines.reset(fleet.view.id, 1000.0)
    assert [type(command) for command in reset.commands] == [SaveBaseline, *[SaveLevels] * 20]
    assert fleet.view.anchor.centre == pytest.approx(595, rel=0.02)
    assert fleet.view.shift is None
    fleet.rounds(5, Round(3, 20, 0.01, everyone))
    assert fleet.against == {}


def test_the_first_devices_do_not_decide_for_all(fleet: Fleet) -> None:
    """A rack of slow nodes that comes first is found when the others are there."""
    slow = {f"n{number}": 0.85 for number in range(5)}
    fleet.rounds(4, Round(1, 5, 0.01, slow))
    assert fleet.view.anchor.centre == pytest.approx(595, rel=0.02)
    fleet.rounds(4, Round(2, 100, 0.01, slow))
    assert fleet.view.anchor.centre == pytest.approx(700, rel=0.02)
    assert set(fleet.against) == set(slow)


def test_drift_is_found_without_a_fleet(fleet: Fleet) -> None:
    """A device is compared with what it has shown itself, and is in line again when it measures that again."""
    for value in [700.0] * EARLIER_RUNS + [600.0]:
        fleet.measure(gemm("n", value))
    assert fleet.against == {}
    fleet.measure(gemm("n", 600.0))
    assert fleet.against == {"n": [("baseline.drift", 0)]}
    fleet.measure(gemm("n", 700.0))
    assert fleet.against == {"n": [("baseline.drift", 0)]}
    fleet.measure(gemm("n", 700.0))
    assert fleet.against == {}


def test_slow_drift_is_found_as_well(fleet: Fleet) -> None:
    """Half a per cent with each run is noticed, because a device's own level does not follow it."""
    for number in range(60):
        fleet.measure(gemm("n", 700.0 * (1 - 0.005 * number)))
    assert fleet.against == {"n": [("baseline.drift", 0)]}


def test_another_device_in_the_same_place_starts_from_nothing(fleet: Fleet) -> None:
    """What the old one has shown is not held against the new one."""

    def there(uuid: str) -> Device:
        return Device(index=0, uuid=uuid, model="H200")

    for value in [700.0] * EARLIER_RUNS + [500.0] * 2:
        fleet.measure(gemm("n", value), there("old"))
    assert fleet.against == {"n": [("baseline.drift", 0)]}
    for value in [500.0] * 20:
        fleet.measure(gemm("n", value), there("new"))
    assert fleet.against == {}
    assert fleet.view.devices == 1


def test_a_device_that_is_gone_is_no_longer_held_against_its_node(fleet: Fleet) -> None:
    """As soon as the node says that it has it no more."""
    two = [Device(index=index, uuid=str(index), model="H200") for index in range(2)]
    for values in [(700.0, 700.0)] * EARLIER_RUNS + [(700.0, 500.0)] * 2:
        fleet.measure(gemm("n", *values), *two)
    assert fleet.against == {"n": [("baseline.drift", 1)]}
    fleet.measure(gemm("n", 700.0), two[0])
    assert fleet.against == {}
    assert fleet.view.devices == 1


def test_a_node_with_other_hardware_is_held_only_to_what_it_is_now(fleet: Fleet) -> None:
    """What it was compared with before has nothing to say any more."""
    for value in [700.0] * EARLIER_RUNS + [500.0] * 2:
        fleet.measure(gemm("n", value))
    assert fleet.against == {"n": [("baseline.drift", 0)]}
    fleet.measure(gemm("n", 500.0, facts={"gpu_model": "H100"}))
    assert fleet.held == {"n": {subject: [] for subject in fleet.held["n"]}}


def test_those_who_left_the_fleet_are_no_crowd(fleet: Fleet) -> None:
    """Three bad nodes that were replaced under other names hide a fourth for a week and no longer."""
    fleet.rounds(4, Round(1, 20, 0.01, dict.fromkeys(("n1", "n2", "n3"), 0.8)))
    assert fleet.view.shift is not None
    for name in ("n1", "n2", "n3"):
        fleet.gone.add(name)
    fleet.now += SAME_TIME_S
    fleet.rounds(2, Round(2, 20, 0.01, {"n4": 0.8}))
    assert fleet.view.shift is None
    assert "n4" in fleet.against


def test_more_may_be_worse(fleet: Fleet) -> None:
    """Of a time, a high value is the bad one."""
    for _ in range(EARLIER_RUNS):
        fleet.measure(gemm("n", 1.0, 1.0, metric="step_time_s"))
    for _ in range(3):
        fleet.measure(gemm("n", 0.5, 1.5, metric="step_time_s"))
    assert fleet.against == {"n": [("baseline.drift", 1)]}


@pytest.mark.parametrize(
    "run",
    [
        gemm("n", 1.0, verdict=Verdict.FAIL),
        gemm("n", 1.0, verdict=Verdict.UNKNOWN),
        gemm("n", 1.0, verdict=Verdict.SKIPPED),
        gemm("n", 1.0, group="g"),
        gemm("n", 1.0, metric="something"),
        gemm("n", None),
        gemm("n", 1.0, params={"long": "x" * 5000}),
    ],
)
def test_what_teaches_nothing(fleet: Fleet, run: Run) -> None:
    """A run that fails or broke, one in a group, one without such a metric, one with endless parameters."""
    fleet.measure(run)
    assert fleet.baselines.views() == []


@pytest.mark.parametrize(
    "other",
    [
        {"facts": {"gpu_model": "H100"}},
        {"facts": {"backend": "cpu"}},
        {"facts": {"simulated": True}},
        {"facts": {"shape": [1, 2, 3]}},
        {"params": {"size": 1}},
        {"metric": "step_time_s"},
    ],
)
def test_what_cannot_be_compared_is_apart(fleet: Fleet, other: dict[str, Any]) -> None:
    """Other hardware, work or parameters have a baseline of their own."""
    fleet.measure(gemm("a", 1.0))
    fleet.measure(gemm("b", 1.0, **other))
    assert [view.devices for view in fleet.baselines.views()] == [1, 1]


def test_a_restart_changes_nothing() -> None:
    """Anchors, own levels, last values and nodes out of line come back as they were, and so it goes on."""
    before = Fleet()
    runs = []
    for source in (Round(1, 40, 0.01), Round(2, 40, 0.01, {"n7": 0.8})):
        for _ in range(EARLIER_RUNS):
            runs += list(source)
    for run in runs:
        before.measure(run)
    after = restarted(before)
    assert after.view == before.view
    assert after.view.out_of_line == ("n7",)
    after.held.clear()
    before.commands.clear()
    for run in Round(3, 40, 0.01, {"n7": 0.8}):
        before.measure(run)
        after.measure(run)
    assert after.commands == before.commands
    assert after.against == before.against != {}


def restarted(before: Fleet) -> Fleet:
    """The fleet after a restart from what was stored last."""
    stored = {command.record.id: command.record for command in before.commands if isinstance(command, SaveBaseline)}
    levels = {command.record.node: command.record for command in before.commands if isinstance(command, SaveLevels)}
    known = Baselines()
    known.restore(StoredComparisons(baselines=stored, levels={before.view.id: levels.values()}))
    after = Fleet(known)
    after.now, after.held = before.now, {**before.held}
    return after


def test_a_shift_after_a_restart_withdraws_what_stood_before_it() -> None:
    """The finding against a slow node ends with the shift, and does not come back with another restart."""
    before = Fleet()
    before.rounds(4, Round(1, 40, 0.01, {"n7": 0.8}))
    assert [*before.against] == ["n7"]
    after = restarted(before)
    slow = {f"n{number}": 0.7 for number in range(40) if number != 7}
    after.gone.add("n7")
    after.rounds(4, Round(2, 40, 0.01, slow))
    assert after.against == {}
    (finding,) = after.baselines.findings()
    levels = {command.record.node: command.record for command in after.commands if isinstance(command, SaveLevels)}
    assert (levels["n7"].out_of_line, levels["n7"].held) == (True, False)
    after.commands = before.commands + after.commands
    assert restarted(after).baselines.findings() == (finding,)


def test_a_large_fleet_is_restored_one_part_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured, or has found that the fleet is slower, comes first; whoever looks sees everything."""
    before = Fleet()
    for size in range(4):
        before.rounds(3, [gemm(f"n{number}", 700.0, params={"size": size}) for number in range(20)])
    stored = {command.record.id: command.record for command in before.commands if isinstance(command, SaveBaseline)}
    shifted, *others = stored
    stored[shifted] = stored[shifted].model_copy(update={"since": 1.0})
    levels: dict[str, dict[str, LevelsRecord]] = {key: {} for key in stored}
    for command in before.commands:
        if isinstance(command, SaveLevels):
            levels[command.record.baseline][command.record.node] = command.record
    read: list[str] = []

    def reading(key: str) -> Iterator[LevelsRecord]:
        read.append(key)
        yield from levels[key].values()

    monkeypatch.setattr(baselines, "DEVICES_AT_ONCE", 10)
    known = Baselines()
    reversed_order = dict(reversed(stored.items()))
    known.restore(StoredComparisons(baselines=reversed_order, levels={key: reading(key) for key in stored}))
    assert read == [shifted]
    assert [finding.baseline for finding in known.findings()] == [shifted]
    assert len(known) == 4
    after = Fleet(known)
    after.measure(gemm("n1", 700.0, params={"size": 1}))
    assert read == [shifted, others[0]]
    known.restore_some(1)
    assert len(read) == 3
    assert [view.devices for view in known.views()] == [20] * 4
    assert sorted(read) == sorted(stored)


def test_a_restart_does_not_take_a_reset_back() -> None:
    """The runs from before the reset, which come again from the store, teach nothing any more."""
    before = Fleet()
    runs = [*Round(1, 20, 0.01)] * 4
    runs += [run for _ in range(4) for run in Round(2, 20, 0.01, {f"n{number}": 0.8 for number in range(20)})]
    for run in runs:
        before.measure(run)
    reset = before.baselines.reset(before.view.id, before.now)
    (stored,) = [command.record for command in reset.commands if isinstance(command, SaveBaseline)]
    known = Baselines()
    known.restore(StoredComparisons(baselines={stored.id: stored}))
    after = Fleet(known)
    for run in runs:
        after.measure(run)
    assert after.view.anchor == before.view.anchor
    after.rounds(EARLIER_RUNS, Round(3, 20, 0.01, {f"n{number}": 0.8 for number in range(20)}))
    assert after.ever == set()
    assert after.baselines.findings() == ()


def test_the_few_that_come_first_after_a_restart_are_not_the_fleet() -> None:
    """The anchor stays where it was when these are the fast ones of two kinds of node."""
    kinds = {f"n{number}": 0.9 if number >= 20 else 1.0 for number in range(50)}
    before = Fleet()
    before.rounds(4, Round(1, 50, 0.005, kinds))
    (*_, stored) = [command.record for command in before.commands if isinstance(command, SaveBaseline)]
    known = Baselines()
    known.restore(StoredComparisons(baselines={stored.id: stored}))
    after = Fleet(known)
    for run in sorted((run for _ in range(3) for run in Round(2, 50, 0.005, kinds)), key=lambda run: int(run.node[1:])):
        after.measure(run)
    assert after.view.anchor == stored.anchor
    assert after.baselines.findings() == ()


def test_what_is_kept_is_bounded(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not measured for the longest goes, with what it held against nodes and what is stored of it."""
    monkeypatch.setattr(baselines, "MAX_BASELINES", 2)
    for value in [700.0] * EARLIER_RUNS + [500.0] * 2:
        fleet.measure(gemm("n", value))
    oldest = fleet.view.id
    assert fleet.against
    for size in range(5):
        fleet.measure(gemm("n", 1.0, params={"size": size}))
    assert len(fleet.baselines) == 2
    assert fleet.against == {}
    assert EraseBaseline(oldest) in fleet.commands
    monkeypatch.setattr(baselines, "MAX_DEVICES", 3)
    fleet.measure(gemm("n", *[1.0] * 4))
    assert len(fleet.baselines) == 1


def test_an_unknown_baseline_cannot_be_reset(fleet: Fleet) -> None:
    """It is refused with those that there are."""
    fleet.measure(gemm("n", 1.0))
    with pytest.raises(Refused, match=fleet.view.id):
        fleet.baselines.reset("nothing", 1.0)


@pytest.mark.parametrize(
    ("value", "level", "worse", "bad"),
    [
        (93.0, Level(100.0, 0.0), Worse.LOWER, False),  # within the floor of 1.5 %, five times
        (92.0, Level(100.0, 0.0), Worse.LOWER, True),
        (92.0, Level(100.0, 2.0), Worse.LOWER, False),
        (89.0, Level(100.0, 2.0), Worse.LOWER, True),
        (200.0, Level(100.0, 0.0), Worse.LOWER, False),
        (108.0, Level(100.0, 0.0), Worse.HIGHER, True),
        (50.0, Level(100.0, 0.0), Worse.HIGHER, False),
        (5.0, Level(0.0, 0.0), Worse.HIGHER, False),  # nothing to measure it by
    ],
)
def test_how_much_worse_is_too_much(value: float, level: Level, worse: Worse, bad: bool) -> None:
    """Five spreads, of which one is at least 1.5 % here."""
    assert too_bad(value, level, worse, 0.015) is bad


def test_a_level_is_robust() -> None:
    """A few wild values move neither centre nor spread much."""
    assert level_of([10.0, 11.0, 12.0, 13.0, 1e9]) == Level(12.0, 1.4826)


@pytest.mark.parametrize(("out", "nodes", "crowd"), [(2, 3, False), (3, 3, True), (3, 31, False), (10, 100, True)])
def test_a_crowd_is_a_tenth_and_at_least_three(out: int, nodes: int, crowd: bool) -> None:
    """Fewer than that may all be broken by themselves."""
    assert is_crowd(out, nodes) is crowd
