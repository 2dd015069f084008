"""The step from each service state to the next, for everything that can happen to a node."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from tests.cases import cases

from muster.errors import Refused
from muster.model import ServiceState, Verdict
from muster.transition import Effect, Mark
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.quarantine_events import NodeNotListed
from muster_coordinator.quarantine.desired import ARROWS, StateStep

STATES = {state.name[0]: state for state in ServiceState}

LEADS = {
    StateStep.ACCEPT: "A>I",
    StateStep.CORDON: "A>C I>C H>C",
    StateStep.WAIT: "I>H",
    StateStep.CLEAR: "H>I",
    StateStep.RETEST: "C>P",
    StateStep.PASS: "P>I",
    StateStep.FAIL: "P>C",
    StateStep.RETURN: "A>I H>I C>I P>I",
}


@cases(("state", "step"), list(product(ServiceState, StateStep)))
def test_where_each_step_leads(state: ServiceState, step: StateStep) -> None:
    """Each leads from the states that it is about to one other, and nowhere from all others."""
    leads = dict(move.split(">") for move in LEADS[step].split())
    after = leads.get(state.name[0])
    assert ARROWS.get((state, step)) == (STATES[after] if after else None)


def an_accepting_node(told: Any) -> None:
    told.add("a", fit=False)


def a_node_in_service(told: Any) -> None:
    told.add("a")


def a_held_node(told: Any) -> None:
    """The budget has room for one, and another has taken it."""
    told.add("a")
    told.add("x", place="r2")
    told.accuse("x", "nvml.gone")
    told.accuse("a", "gemm.slow")


def a_cordoned_node(told: Any) -> None:
    told.add("a")
    told.accuse("a", "gemm.slow")
    told.answer("a", Effect.DONE)


def a_node_in_probation(told: Any) -> None:
    a_cordoned_node(told)
    told.release("a")
    told.answer("a", Effect.DONE)


BECOMES = {
    "A": an_accepting_node,
    "I": a_node_in_service,
    "H": a_held_node,
    "C": a_cordoned_node,
    "P": a_node_in_probation,
}

HAPPENS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "proven evidence comes": ("CCHCP", lambda told: told.accuse("a", "nvml.gone")),
    "evidence comes that is not proven": ("AIHCP", lambda told: told.accuse("a", "gemm.slow", proof=Proof.ONCE)),
    "an application fails": ("AIIPP", lambda told: told.accuse("a", "nvml.xid")),
    "the evidence goes": ("IIIPP", lambda told: told.absolve("a")),
    "it falls silent": ("AIHCP", lambda told: told.lose("a")),
    "it is away and back": ("AIHPP", lambda told: (told.lose("a"), told.hear("a"))),
    "it stays silent for long": ("CCHCP", lambda told: (told.lose("a"), told.wait(700))),
    "somebody holds it": ("AIHCP", lambda told: told.hold("a")),
    "it is held and the evidence goes": ("AIHCP", lambda told: (told.hold("a"), told.absolve("a"))),
    "it is held and evidence comes": ("AIHCP", lambda told: (told.hold("a"), told.accuse("a", "nvml.gone"))),
    "somebody releases it": ("xxxPx", lambda told: told.release("a")),
    "somebody releases it untested": ("IxIII", lambda told: told.release("a", untested=True)),
    "its scheduler lets it work": ("AIHCP", lambda told: told.survey("a", Mark.NONE)),
    "its scheduler has our mark": ("AIHCP", lambda told: told.survey("a", Mark.OURS)),
    "our mark is undone": ("AIHII", lambda told: told.survey("a", Mark.UNDONE)),
    "somebody else cordons it": ("AIHCP", lambda told: told.survey("a", Mark.FOREIGN)),
    "it opts out": ("AIHCP", lambda told: told.survey("a", Mark.NONE, opted_out=True)),
    "it is about to leave": ("AIICP", lambda told: told.survey("a", Mark.NONE, leaving="scale-down")),
    "its scheduler has it no more": ("AIHCP", lambda told: told.tell(NodeNotListed(actor="k8s", node="a"))),
    "its test passes": ("----P", lambda told: told.end_test("a", Verdict.PASS)),
    "its test fails": ("----C", lambda told: told.end_test("a", Verdict.FAIL)),
    "its test cannot tell": ("----P", lambda told: told.end_test("a", Verdict.UNKNOWN)),
    "an actor fails": ("-IHCP", lambda told: told.answer("a", Effect.FAILED)),
    "an actor is done": ("-IHCP", lambda told: told.answer("a", Effect.DONE)),
    "an actor leaves it": ("-IHCP", lambda told: told.answer("a", Effect.LEFT)),
    "a day passes": ("AIHCP", lambda told: told.wait(86_400)),
    "the coordinator restarts": ("AIHCP", lambda told: (told.restart(), told.wait(1))),
    "a freeze is lifted that there is not": ("xxxxx", lambda told: told.lift()),
}
"""By what happens, the states that follow in the order of BECOMES; x is refused, - cannot be."""


@pytest.mark.parametrize(
    ("state", "happens", "expected"),
    [
        pytest.param(state, happens, expected, id=f"{happens} to {state}")
        for happens, (states, _) in HAPPENS.items()
        for state, expected in zip(BECOMES, states, strict=True)
        if expected != "-"
    ],
)
def test_what_happens_in_which_state(quarantine: Any, state: str, happens: str, expected: str) -> None:
    """Nothing leads anywhere but where the table says, and what changes is written down and told."""
    told = quarantine(budget={"nodes": 1, "per_minute": 6000, "share": "100%"})
    told.add("y", "z", place="r3")
    BECOMES[state](told)
    assert told.state("a") is STATES[state]
    before = told.case("a").transition
    if expected == "x":
        with pytest.raises(Refused):
            HAPPENS[happens][1](told)
        assert told.state("a") is STATES[state]
        return
    HAPPENS[happens][1](told)
    assert told.state("a") is STATES[expected]
    assert told.records["a"] == told.record("a"), "the record is stored as it is"
    if state != expected:
        assert (told.transition("a").before, told.transition("a").after) == (STATES[state], STATES[expected])
        assert before != told.case("a").transition
