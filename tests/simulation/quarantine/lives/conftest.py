"""What happens to simulated fleets under quarantine, and what must have become of them when it ends."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from muster.errors import Refused
from muster.model import ServiceState
from muster.transition import OUT_OF_SERVICE, Mark
from muster_coordinator.model.quarantine_events import FreezeLifted, HoldRequested, NodeErased, ReleaseRequested
from muster_coordinator.quarantine.desired import needs_person

CHECKS = ("collective", "gemm", "kernel_log", "nvml")


def some_check_runs(world: Any, node: Any) -> None:
    if node.online:
        world.run(node, world.lot.choice(CHECKS))


def something_breaks(world: Any, node: Any) -> None:
    node.broken.add(world.lot.choice(CHECKS))
    for check in [*node.broken, *node.broken] * node.online:
        world.run(node, check)


def it_heals(world: Any, node: Any) -> None:
    node.broken.clear()


def it_goes_or_comes(world: Any, node: Any) -> None:
    if node.online:
        world.lose(node)
    else:
        world.hear(node)


def it_is_cordoned_or_uncordoned_by_hand(world: Any, node: Any) -> None:
    entry = world.entries[node.name]
    entry.cordoned = not entry.cordoned


def it_is_held_or_released(world: Any, node: Any) -> None:
    if node.name not in world.reconciler.records:
        return
    said = {"node": node.name, "by": "ada", "reason": "as I say"}
    if world.lot.random() < 0.4:
        world.tell(HoldRequested(**said))
        return
    with suppress(Refused):  # there may be nothing to release it from
        world.tell(ReleaseRequested(**said, untested=world.lot.random() < 0.3))


def it_opts_in_or_out(world: Any, node: Any) -> None:
    entry = world.entries[node.name]
    entry.opted_out = not entry.opted_out


def it_plans_to_leave_or_stays(world: Any, node: Any) -> None:
    entry = world.entries[node.name]
    entry.leaving = None if entry.leaving else "reboot announced"


def it_is_deleted_or_created_again(world: Any, node: Any) -> None:
    entry = world.entries[node.name]
    entry.listed = not entry.listed
    if entry.listed:
        entry.cordoned, entry.mark = False, None
    else:
        world.lose(node)


def it_is_surveyed(world: Any, node: Any) -> None:
    world.survey(node.name, late=world.lot.random() < 0.3)


def an_old_survey_comes(world: Any, node: Any) -> None:
    if world.stale:
        world.tell(world.stale.pop(0))


def actors_answer(world: Any, node: Any) -> None:
    for name in [name for name, acts in world.acts.items() if acts]:
        world.answer(name)


def a_test_ends(world: Any, node: Any) -> None:
    if world.tests:
        world.test(world.tests.pop(world.lot.randrange(len(world.tests))))


def it_is_stored(world: Any, node: Any) -> None:
    world.flush()


def time_passes(world: Any, node: Any) -> None:
    world.wait(world.lot.choice([1, 5, 30, 200]))


def the_freeze_is_lifted(world: Any, node: Any) -> None:
    if world.reconciler.fleet_view().frozen:
        world.tell(FreezeLifted(by="ada", reason="they are bad"))


def it_is_long_gone(world: Any, node: Any) -> None:
    record = world.reconciler.records.get(node.name)
    if record is not None and record.is_long_gone(world.now, world.now):
        world.tell(NodeErased(node=node.name))


def indexes_are_rebuilt(world: Any, node: Any) -> None:
    world.rebuild_indexes()


def the_coordinator_crashes(world: Any, node: Any) -> None:
    world.crash()


def the_mode_changes(world: Any, node: Any) -> None:
    mode = world.lot.choice(["observe", "dry-run", "enforce"])
    world.crash(world.settings.model_copy(update={"mode": mode}))


HAPPENS = {
    some_check_runs: 4,
    something_breaks: 3,
    it_heals: 2,
    it_goes_or_comes: 1,
    it_is_cordoned_or_uncordoned_by_hand: 1,
    it_is_held_or_released: 1,
    it_opts_in_or_out: 0.3,
    it_plans_to_leave_or_stays: 0.5,
    it_is_deleted_or_created_again: 0.5,
    it_is_surveyed: 4,
    an_old_survey_comes: 2,
    actors_answer: 6,
    a_test_ends: 5,
    it_is_stored: 8,
    time_passes: 8,
    the_freeze_is_lifted: 0.3,
    it_is_long_gone: 0.5,
    indexes_are_rebuilt: 0.5,
    the_coordinator_crashes: 0.7,
    the_mode_changes: 0,
}
"""What happens, and how often beside each other."""


def lives(world: Any, steps: int, **weights: float) -> None:
    """Lets anything happen to any node, so many times, with these weights where they are not the usual ones."""
    usual = {happens.__name__: weight for happens, weight in HAPPENS.items()}
    for happens in world.lot.choices([*HAPPENS], [*(usual | weights).values()], k=steps):
        happens(world, world.lot.choice([*world.nodes.values()]))


def calm_down(world: Any) -> None:
    """Ends all that goes wrong but hardware, and lets everything be done that is to be done."""
    world.faults = 0.0
    world.stale.clear()
    for entry in world.entries.values():
        entry.listed = True
        entry.leaving = None
    for node in world.nodes.values():
        if not node.online:
            world.hear(node)
    go_on(world, 2)
    world.wait(7200)  # a test whose order was lost is asked for again
    go_on(world, 8)


def go_on(world: Any, rounds: int) -> None:
    """So many times: everything is stored and said, answered, measured and surveyed."""
    world.settle()
    for _ in range(rounds):
        world.wait(300)
        for name, node in world.nodes.items():
            world.survey(name)
            for check in ("gemm", "kernel_log", "nvml") * (not node.is_fit or bool(node.broken)):
                world.run(node, check)
        world.settle()


def assert_all_is_as_it_should_be(world: Any) -> None:
    """Schedulers have what was decided, what is bad is out or visibly waits, and what is good works or is held."""
    for name, case in world.cases.items():
        seen = world.entries[name].seen(name)
        is_out = case.state in OUT_OF_SERVICE and (case.state is not ServiceState.ACCEPTING or case.kept_out_as_new)
        if not seen.opted_out and seen.mark is not Mark.FOREIGN:
            assert case.hold or is_out == (seen.mark is Mark.OURS), (name, case.state, seen)
        if case.left_alone_because is None:
            assert_is_in_the_right_place(world, case)


def assert_is_in_the_right_place(world: Any, case: Any) -> None:
    node = world.nodes[case.node]
    if node.is_bad and node.evidence.findings:
        waits = case.held_because or (case.requirement is None or not case.requirement.is_proven)
        assert case.state in OUT_OF_SERVICE or waits, case
    elif not node.evidence.findings:
        waits_for_a_person = needs_person(case.cordoned_at, world.settings.returning)
        assert case.state is ServiceState.IN_SERVICE or waits_for_a_person, case


def release_all(world: Any) -> None:
    """What people do in the end: they repair and sweep everything, take back what they have done, and release all."""
    for name, node in world.nodes.items():
        node.broken.clear()
        world.run(node, "collective")
        entry, case = world.entries[name], world.case(name)
        entry.opted_out = False
        entry.cordoned = entry.cordoned and entry.mark is not None
        if case.hold or case.state is ServiceState.CORDONED:
            world.tell(ReleaseRequested(node=name, by="ada", reason="repaired"))


def assert_all_comes_to_what_it_should_be(world: Any) -> None:
    """When faults stop all is as it should be, and when everything is repaired all is in service."""
    calm_down(world)
    assert_all_is_as_it_should_be(world)
    release_all(world)
    go_on(world, 6)
    assert_all_is_as_it_should_be(world)
    assert {case.state for case in world.cases.values()} == {ServiceState.IN_SERVICE}


@pytest.fixture
def run_life() -> Callable[..., None]:
    """Lets anything happen to a world."""
    return lives


@pytest.fixture
def calm_down_and_check() -> Callable[[Any], None]:
    """Ends all that goes wrong, and looks whether all is as it should be."""
    return assert_all_comes_to_what_it_should_be
