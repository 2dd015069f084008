"""The page of the quarantine: who is in which list, since when and why, and what is dry-run."""

from tests.cases import cases
from tests.coordinator.views.pages.fleet_rows import NOW, SLURM

from muster.model import Action, ServiceState
from muster.transition import Effect, Transition
from muster_coordinator.model.quarantine import (
    Hold,
    MassEvent,
    NodeDecision,
    NodeEvidence,
    QuarantineRecord,
    Requirement,
)
from muster_coordinator.model.quarantine_events import Asked, FreezeLifted
from muster_coordinator.model.quarantine_views import (
    ActorView,
    BudgetView,
    CaseView,
    DomainView,
    KeptOffView,
    QuarantineView,
)
from muster_coordinator.model.transitions import ActorOutcome, TransitionRecord
from muster_coordinator.views.pages.bounded import Bounded
from muster_coordinator.views.pages.quarantine_page import (
    MOST_CASES,
    CaseGroup,
    QuarantineFacts,
    first_of_each,
    groups_of,
    quarantine_page,
)

REQUIRED = Requirement(
    row="slow", codes=("gemm.slow",), cause="gemm.slow", action=Action.REPLACE, urgency=45, reason="It waits"
)
FAILED = ActorOutcome(effect=Effect.FAILED, detail="no such node", at=NOW, tries=3, next_try=NOW + 60)


def budget(*, mode="enforce", actors=(SLURM,), unheard=(), **more):
    common = {"nodes": 10, "away": 1, "limit": 2, "per_minute": 6.0, "held": (), "frozen": (), "domains": ()}
    return BudgetView(quarantine=QuarantineView(**{"mode": mode, **common, **more}), actors=actors, unheard=unheard)


def page(whole=None, **more):
    return quarantine_page(QuarantineFacts(at=NOW, budget=whole or budget(), **more))


def case(state=ServiceState.CORDONED, **more):
    return CaseView(**{"node": "n1", "state": state, "since": NOW - 60, "rounds": 2, **more})


def transition(**more):
    common = {"id": "t", "node": "n1", "before": ServiceState.IN_SERVICE, "after": ServiceState.CORDONED, "at": NOW}
    return Transition(**{**common, "reason": "XID 79", **more})


def told(**outcomes):
    return TransitionRecord(transition=transition(), told=True, outcomes=outcomes)


def record(state, *, has_left=False, **decision):
    return QuarantineRecord(
        node="n1",
        decision=NodeDecision(state=state, since=NOW, **decision),
        evidence=NodeEvidence(has_left=has_left),
    )


HELD, OUT, NEW, ALONE = CaseGroup.HELD, CaseGroup.OUT, CaseGroup.NEW, CaseGroup.LEFT_ALONE
HOLD = Hold(by="ann", reason="a fan", at=NOW)
UNPROVEN = REQUIRED.model_copy(update={"unproven": ("gemm",)})


@cases(
    "record, groups",
    [
        (record(ServiceState.IN_SERVICE), []),
        (record(ServiceState.HELD, requirement=REQUIRED), [HELD]),
        (record(ServiceState.IN_SERVICE, requirement=REQUIRED), [HELD]),  # in observe mode
        (record(ServiceState.IN_SERVICE, requirement=UNPROVEN), []),
        (record(ServiceState.IN_SERVICE, requirement=REQUIRED, hold=HOLD), [ALONE]),
        (record(ServiceState.CORDONED, requirement=REQUIRED), [OUT]),
        (record(ServiceState.PROBATION, hold=HOLD), [OUT, ALONE]),
        (record(ServiceState.ACCEPTING), [NEW]),
        (record(ServiceState.ACCEPTING, has_left=True), []),
    ],
)
def test_nodes_are_listed_by_what_happens_to_them(record, groups):
    """A node may be in several lists."""
    assert [*groups_of(record, None)] == groups


@cases(
    "latest, is_pending",
    [
        (told(), False),
        (told(slurm=FAILED), True),
        (told(slurm=FAILED.model_copy(update={"effect": Effect.LEFT})), False),
        (TransitionRecord(transition=transition()), True),
    ],
)
def test_an_action_that_failed_or_has_not_begun_is_pending(latest, is_pending):
    """What an actor leaves as it is is over."""
    found = [*groups_of(record(ServiceState.IN_SERVICE), latest)]
    assert (CaseGroup.PENDING in found) is is_pending


def test_lists_have_the_oldest_first_and_count_the_rest():
    """However many nodes are out."""
    found = [(OUT, float(-number), f"n{number}") for number in range(MOST_CASES + 5)]
    out = first_of_each([*found, (HELD, 1.0, "n99")])[OUT]
    assert (out.items[0], len(out.items), out.rest) == (f"n{MOST_CASES + 4}", MOST_CASES, 5)


def test_a_case_says_since_when_and_why():
    """A held node since it should be drained; an actor that failed, with its next try."""
    held = case(ServiceState.HELD, requirement=REQUIRED, required_since=NOW - 600, held_because="Not drained: budget")
    failing = case(dry_run=True, outcomes={"slurm": FAILED})
    shown = page(cases={HELD: Bounded((held,), 3), OUT: Bounded((failing,))}).cases
    (row,) = shown[HELD].items
    assert (row.since, row.why, shown[HELD].rest) == (
        NOW - 600,
        ("gemm.slow (policy row slow)", "Not drained: budget"),
        3,
    )
    (row,) = shown[OUT].items
    assert (row.state, row.since) == ("CORDONED (dry run)", NOW - 60)
    assert row.not_done[0].startswith("slurm: FAILED (tried 3 times): no such node; next try at ")
    assert shown[NEW].total == 0


def test_the_fullest_domain_comes_first():
    """There the next node is not drained."""
    domains = tuple(DomainView(name=name, nodes=16, away=away, limit=4) for name, away in (("r1", 1), ("r2", 4)))
    assert [domain.name for domain in page(budget(domains=domains)).domains.items] == ["r2", "r1"]


@cases(
    "more, text",
    [
        ({"actors": ()}, "No actor can drain nodes"),
        ({"actors": (), "mode": "observe"}, None),
        ({"unheard": ("n7",)}, "no agent reports from there: n7"),
        ({"kept_off": (KeptOffView(how="slurm: maintenance", nodes=("n8",)),)}, "(slurm: maintenance), and counted"),
        ({"catching_up": 3}, "older reports have not all arrived: 3 nodes"),
        ({}, None),
    ],
)
def test_what_does_not_work_is_said(more, text):
    """Above everything else."""
    problems = page(budget(**more)).problems
    assert problems == () if text is None else text in " ".join(problems)


def test_a_mass_event_has_its_cause_in_words():
    """As an XID, if it is one."""
    event = MassEvent(cause="nvml.xid 79", nodes=5, since=NOW - 60)
    (frozen,) = page(budget(frozen=(event,))).frozen
    assert (frozen.label, frozen.nodes, frozen.since) == ("XID 79", 5, NOW - 60)


def test_decisions_and_requests_are_one_list():
    """With who asked, why, and what each actor did."""
    asked = Asked(id="a", at=NOW, request=FreezeLifted(by="ann", reason="a fan"))
    decided = told(slurm=FAILED).model_copy(update={"transition": transition(dry_run=True)})
    first, second = page(decisions=(asked, decided), has_more=True).decisions
    assert (first.node, first.what, first.by, first.reason) == (None, "unfreeze", "ann", "a fan")
    assert (second.node, second.what, second.by) == ("n1", "IN_SERVICE to CORDONED (dry run)", None)
    assert second.outcomes[0].startswith("slurm: FAILED")


@cases("mode", ["observe", "dry-run", "enforce"])
def test_the_mode_is_explained(mode):
    """In a sentence."""
    shown = page(budget(mode=mode, actors=(ActorView(name="slurm", can_cordon=True),)))
    assert (shown.mode, bool(shown.mode_text)) == (mode, True)
