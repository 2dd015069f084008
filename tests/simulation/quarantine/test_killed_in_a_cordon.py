"""A coordinator that is killed at any step of taking a node out or letting it back, and starts again."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from muster.model import ServiceState
from muster.quarantine_settings import BudgetSettings, QuarantineSettings, ReturnSettings
from muster_coordinator.model.quarantine_events import ReleaseRequested

Simulate = Callable[..., Any]

STEPS = ("decided", "stored", "said", "called", "answered", "answer stored", "all told", "all stored")
"""How far a transition has come when the coordinator is killed; until it is stored it has never been."""


@pytest.fixture
def world(simulate: Simulate) -> Any:
    """Three nodes in service, the first of which can be tested and come back at once."""
    settings = QuarantineSettings(
        mode="enforce",
        budget=BudgetSettings(share="100%", domain_share="100%", per_minute=6000),
        returning=ReturnSettings(passes=1, pause_s=0, wait_s=0),
    )
    built = simulate(0, nodes=3, settings=settings, faults=0.0)
    for node in built.nodes.values():
        for check in ("gemm", "kernel_log", "nvml"):
            built.run(node, check)
    built.settle()
    assert {case.state for case in built.cases.values()} == {ServiceState.IN_SERVICE}
    return built


def go_to(world: Any, step: str) -> None:
    """Goes on with what is to be said about the first node until this step has been taken."""
    for each in STEPS[1 : STEPS.index(step) + 1]:
        match each:
            case "stored":
                said = world.write()
            case "said":
                world.say(said)
            case "called" if world.acts["n0"]:
                world.entries["n0"].act(world.acts["n0"][0].record.transition)
            case "answered" if world.acts["n0"]:
                world.answer("n0")
            case "answer stored" | "all stored":
                world.flush()


def killed(world: Any, step: str) -> None:
    """Kills the coordinator at this step and starts it again."""
    go_to(world, step)
    world.kill()
    world.now += 1
    world.start(world.settings)


def go_on_until(world: Any, state: ServiceState) -> None:
    """Has the first node tested, and its actors answer, until it is decided to be in this state."""
    for _ in range(50):
        if world.cases["n0"].state is state:
            return
        world.flush()
        while world.acts["n0"]:
            world.answer("n0")
        if world.tests:
            world.test(world.tests.pop(0))
        else:
            world.wait(5)
    raise AssertionError(f"it did not become {state}: {world.cases['n0']}")


def states_told(world: Any, state: ServiceState) -> int:
    """To how many transitions of the first node into this state is stored."""
    transitions = [record.transition for record in world.store.transitions.values()]
    return sum(transition.node == "n0" and transition.after is state for transition in transitions)


@pytest.mark.parametrize(("first", "second"), list(product(STEPS, STEPS)))
def test_a_node_is_cordoned_exactly_once(world: Any, first: str, second: str) -> None:
    """Wherever the coordinator is killed, twice: one transition is stored, and the scheduler is changed once."""
    world.nodes["n0"].broken.add("nvml")
    world.run(world.nodes["n0"], "nvml")
    killed(world, first)
    killed(world, second)
    world.wait(5)
    world.settle()
    assert world.cases["n0"].state is ServiceState.CORDONED
    assert (world.entries["n0"].cordoned, world.entries["n0"].changes) == (True, 1)
    assert world.entries["n0"].mark == world.cases["n0"].transition
    assert states_told(world, ServiceState.CORDONED) == 1


@pytest.mark.parametrize(("first", "second"), list(product(STEPS, STEPS)))
def test_a_node_is_uncordoned_exactly_once(world: Any, first: str, second: str) -> None:
    """The same for one that somebody releases and that passes its tests."""
    world.nodes["n0"].broken.add("nvml")
    world.run(world.nodes["n0"], "nvml")
    world.settle()
    world.nodes["n0"].broken.clear()
    world.tell(ReleaseRequested(node="n0", by="ada", reason="repaired"))
    world.write()  # whoever asked for it knows that it is so only then
    killed(world, first)
    go_on_until(world, ServiceState.IN_SERVICE)
    killed(world, second)
    go_on_until(world, ServiceState.IN_SERVICE)
    world.settle()
    assert (world.entries["n0"].cordoned, world.entries["n0"].changes) == (False, 2)
    assert states_told(world, ServiceState.IN_SERVICE) == 2, "when it was accepted, and now"


@pytest.mark.parametrize("step", STEPS)
def test_a_node_that_healed_while_nobody_looked_comes_back(world: Any, step: str) -> None:
    """It was cordoned, or not yet, when the coordinator was killed; the evidence of now decides."""
    node = world.nodes["n0"]
    node.broken.add("nvml")
    world.run(node, "nvml")
    go_to(world, step)
    world.kill()
    node.broken.clear()
    world.start(world.settings)
    for _ in range(8):
        world.run(node, "nvml")
        world.wait(5)
        world.settle()
    assert world.cases["n0"].state is ServiceState.IN_SERVICE
    assert not world.entries["n0"].cordoned
    assert world.entries["n0"].changes in (0, 2)
