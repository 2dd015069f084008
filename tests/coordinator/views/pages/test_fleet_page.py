"""The page of the fleet: its sentence, causes, tasks for people, changes and sweeps, the worst first."""

from dataclasses import replace

from tests.cases import cases
from tests.coordinator.views.pages.fleet_rows import NOW, facts, found, row

from muster.alarm import Alarm, AlarmKind
from muster.model import Device, Health, ServiceState, Severity
from muster_coordinator.model.load import CoordinatorLoad
from muster_coordinator.model.nodes import DatabaseUse, StoryEntry
from muster_coordinator.model.quarantine import MassEvent
from muster_coordinator.model.quarantine_events import Asked, HoldRequested
from muster_coordinator.model.quarantine_views import ActorView, CaseView
from muster_coordinator.model.sweep_records import FailedFabric, RoundRecord, SweepRecord, SweepState
from muster_coordinator.store.disk_budget import EARLY_DAYS as DISK_EARLY_DAYS
from muster_coordinator.topology.selection import parse_selection
from muster_coordinator.topology.selection_term import Candidate
from muster_coordinator.views.pages import headline as headlines
from muster_coordinator.views.pages import ranked_causes as ranked
from muster_coordinator.views.pages.fleet_facts import CoordinatorFacts
from muster_coordinator.views.pages.fleet_page import fleet_page
from muster_coordinator.views.pages.headline import headline
from muster_coordinator.views.pages.needs_person import MOST_TASKS, needs_person
from muster_coordinator.views.pages.page_row import SELECTIONS
from muster_coordinator.views.pages.ranked_causes import ranked_causes
from muster_coordinator.views.pages.recent_changes import recent_changes
from muster_coordinator.web.requests import MOST_SELECTION

NODES = (
    row("n1"),
    row("n2", Health.FAILED),
    row("n3", service=ServiceState.CORDONED, is_away=True),
    row("n4", service=ServiceState.ACCEPTING),
    row("n5", lost=True, left=True),
    row("n6", Health.DEGRADED),
)


def test_usable_is_what_gets_work_and_may_be_trusted():
    """Not the nodes that are faulty, away or new; nodes that have left do not count at all."""
    made = headline(facts(*NODES))
    assert (made.usable, made.nodes) == (2, 5)
    assert made.parts == ("1 of at most 2 nodes away", "draining works")
    assert made.problems == ()


def test_simulated_devices_are_said():
    """A simulation is never taken for a fleet; nodes that have left do not count."""
    gpu = Device(index=0, uuid="u", model="NVIDIA H100", simulated=True)
    made = headline(facts(row("n1", devices=(gpu,)), row("n2"), row("n3", devices=(gpu,), left=True)))
    assert "1 node with simulated devices" in made.parts


@cases(
    "more, text",
    [
        ({"coordinator": CoordinatorFacts(is_connected=False)}, "Not connected to the broker"),
        ({"coordinator": CoordinatorFacts(is_stuck=True)}, "Storing hangs"),
        ({"coordinator": CoordinatorFacts(backlog=1200, usual_backlog=500)}, "1,200 changes wait to be stored"),
        ({"coordinator": CoordinatorFacts(muted=("n1",))}, "Muted, because they flood the broker: n1"),
        ({"coordinator": CoordinatorFacts(unread=1)}, "1 damaged row of the database"),
        ({"actors": (ActorView(name="slurm", can_cordon=True, problem="no slurmctld"),)}, "Actor slurm: no slurmctld"),
        ({"actors": ()}, "No actor can drain nodes"),
        ({"unheard": tuple(f"n{n}" for n in range(7))}, "n0, n1, n2, n3, n4 and 2 more"),
    ],
)
def test_what_does_not_work_is_named(more, text):
    """One line for each, and nothing else."""
    (line,) = headline(facts(row("n1"), **more)).problems
    assert text in line


def test_an_overloaded_coordinator_and_a_full_database_are_named():
    """With what to do."""
    made = facts(row("n1"))
    fleet = made.fleet.model_copy(
        update={
            "load": CoordinatorLoad(overloaded_since=NOW, advice="Check less often"),
            "database": DatabaseUse(used_gb=15.0, max_gb=16.0, days_left=1.25),
        }
    )
    problems = headline(replace(made, fleet=fleet)).problems
    assert [text[:30] for text in problems] == ["The coordinator is overloaded.", "The database reaches 16 GB in "]
    assert headlines.EARLY_DAYS == DISK_EARLY_DAYS


@cases("mode, text", [("observe", "mode is observe: no node is drained"), ("dry-run", "mode is dry-run")])
def test_a_mode_that_drains_nothing_is_said(mode, text):
    """Nobody believes that a node is drained while it is not."""
    assert text in headline(facts(row("n1"), quarantine={"mode": mode})).parts[-1]


def test_a_freeze_is_said():
    """By its cause, as operators call it."""
    event = MassEvent(cause="kernel_log.xid 79", nodes=5, since=NOW)
    made = headline(facts(row("n1"), quarantine={"frozen": (event,)}))
    assert made.frozen == ("Draining is frozen: 5 nodes report XID 79",)
    assert "draining works" not in made.parts


def xid(number, **more):
    return found("kernel_log.xid", evidence={"xid": number}, check="kernel_log", **more)


def test_causes_are_ranked():
    """Mass events come first, then errors before warnings, then the cause of more nodes, then the older one."""
    rows = [
        row("n1", findings=(xid(79), found("host.load", Severity.WARNING))),
        row("n2", findings=(xid(79), found("host.load", Severity.WARNING), found(since=NOW - 60))),
        row("n3", findings=(found(), xid(31, since=NOW - 9000), found("host.load", Severity.WARNING))),
        row("n4", Health.UNKNOWN, lost=True, last_seen=NOW - 90),
        row("n5", findings=(xid(48),), lost=True, left=True),
    ]
    event = MassEvent(cause="kernel_log.xid 31", nodes=1, since=NOW)
    causes = ranked_causes(rows, [event]).items
    assert [(cause.label, list(cause.nodes.items), cause.first_seen - NOW) for cause in causes] == [
        ("XID 31", ["n3"], -9000),
        ("XID 79", ["n1", "n2"], -600),
        ("gemm.slow", ["n2", "n3"], -600),
        ("host.load", ["n1", "n2", "n3"], -600),
        ("silent", ["n4"], -90),
    ]
    assert [cause.is_mass_event for cause in causes] == [True, False, False, False, False]


def test_a_cause_of_many_nodes_names_some_and_counts_the_rest():
    """The page stays small."""
    (cause,) = ranked_causes([row(f"n{n:04}", findings=(found(),)) for n in range(1008)], []).items
    assert (len(cause.nodes.items), cause.nodes.total, cause.nodes.rest_text) == (8, 1008, "1,000 more")
    assert cause.select is None


def test_the_nodes_of_a_cause_have_a_table():
    """If their names fit into a selection."""
    (cause,) = ranked_causes([row(f"n{n}", findings=(found(),)) for n in range(3)], []).items
    assert cause.select == "n0,n1,n2"
    assert ranked.MOST_SELECTION == MOST_SELECTION


def test_every_condition_has_a_selection_that_finds_its_nodes():
    """From the legend of the map to the table."""
    states = [(health, service) for health in Health for service in ServiceState]
    rows = [row("n1", *state, lost=lost) for state in states for lost in (False, True)]
    assert {each.condition for each in rows} == set(SELECTIONS)
    for each in rows:
        candidate = Candidate("n1", health=each.health, service=each.service, lost=each.lost)
        chosen = parse_selection(SELECTIONS[each.condition]).fitting([candidate], {})
        assert chosen.nodes == ("n1",), each


def held(name, since=NOW - 60):
    return CaseView(node=name, state=ServiceState.HELD, since=since, rounds=2, held_because="Not drained: budget")


def sweep(id="s1", **more):
    common = {"strategy": "adaptive", "check": "collective", "nodes": ("n1", "n2"), "created_at": NOW - 300}
    return SweepRecord(**{"id": id, "state": SweepState.FINISHED, "ended_at": NOW - 60, **common, **more})


def test_what_waits_for_a_person_is_there_with_what_to_do():
    """The most urgent first; of equal urgency the oldest first."""
    alarms = (
        Alarm(kind=AlarmKind.BUDGET, subject="fleet", text="2 faulty nodes not drained", since=NOW - 9),
        Alarm(kind=AlarmKind.PERSON, subject="n3", text="n3 was drained 3 times", since=NOW - 9),
        Alarm(kind=AlarmKind.ACTION, subject="slurm", text="slurm does not drain n4", since=NOW - 9),
        Alarm(kind=AlarmKind.ACTION, subject="node n4", text="No actor drains n4", since=NOW - 90),
        Alarm(kind=AlarmKind.MASS_EVENT, subject="x 1", text="Mass event: 5 of 9", since=NOW - 1),
    )
    sweeps = (sweep("s2", ended_at=None), sweep(inconclusive=("n7",)), sweep("s0", inconclusive=("n8",)))
    made = facts(
        row("n1"), quarantine={"alarms": alarms, "held": ("n5", "n6")}, held=(held("n6"), held("n5")), sweeps=sweeps
    )
    tasks = needs_person(made).items
    assert [(task.kind, task.node or task.sweep) for task in tasks] == [
        ("mass event", None),
        ("action failed", "n4"),
        ("action failed", None),
        ("repeater", "n3"),
        ("budget", None),
        ("held", "n6"),
        ("held", "n5"),
        ("inconclusive", "s1"),
    ]
    assert all(task.todo and task.text and task.since < NOW for task in tasks)


@cases("mode, text", [("enforce", "Failed and in service: slow"), ("observe", "Failed and in service; mode is obs")])
def test_a_failed_node_that_gets_work_waits_for_a_person(mode, text):
    """A node that is away, held, gone or only suspect does not: muster or somebody else cares for it."""
    rows = (
        row("n1", Health.FAILED, findings=(found(),)),
        row("n2", Health.FAILED, ServiceState.CORDONED, is_away=True, findings=(found(),)),
        row("n3", Health.FAILED, ServiceState.HELD, findings=(found(),)),
        row("n4", Health.FAILED, lost=True, left=True, findings=(found(),)),
        row("n5", Health.SUSPECT, findings=(found(),)),
    )
    (task,) = needs_person(facts(*rows, quarantine={"mode": mode})).items
    assert (task.kind, task.node, task.todo) == ("not drained", "n1", "Replace the hardware")
    assert task.text.startswith(text)


def test_held_nodes_that_have_no_room_are_counted():
    """Of 100 held nodes, the reader reads the cases of the first."""
    names = tuple(f"n{n}" for n in range(100))
    cases_of = tuple(map(held, names[:MOST_TASKS]))
    tasks = needs_person(facts(row("n1"), quarantine={"held": names}, held=cases_of))
    assert (len(tasks.items), tasks.rest) == (MOST_TASKS, 100 - MOST_TASKS)


def entry(node, kind="health", text="HEALTHY to FAILED: gemm failed", at=NOW):
    return StoryEntry(id=f"{node}-{kind}", at=at, node=node, kind=kind, text=text)


def test_the_same_change_of_many_nodes_is_one_line():
    """The latest change comes first, also among what people asked for."""
    request = HoldRequested(node="n9", by="ann", reason="replacing a fan")
    story = [entry(f"n{n}", at=NOW - n) for n in range(9)] + [entry("n1", "lost", "silent", NOW - 300)]
    changes = recent_changes(story, [Asked(id="q", at=NOW - 100, request=request)]).items
    assert [(change.at - NOW, change.kind, change.nodes.total, change.by) for change in changes] == [
        (0, "health", 9, None),
        (-100, "request", 1, "ann"),
        (-300, "lost", 1, None),
    ]
    retests = [entry(f"n{n}", "service", f"IN_SERVICE to CORDONED: slow; retest after {n}") for n in range(3)]
    assert [change.text for change in recent_changes(retests, []).items] == ["IN_SERVICE to CORDONED: slow"]
    assert changes[0].nodes.rest_text == "4 more"
    assert changes[1].text == "hold: replacing a fan"


def test_a_cut_list_of_changes_says_at_least():
    """Nobody counted the rest."""
    story = [entry("n1", text=f"change {n}", at=NOW - n) for n in range(40)]
    assert recent_changes(story, [], is_cut=True).rest_text == "at least 15 more"


def test_running_sweeps_show_how_far_they_are():
    """A sweep that has ended is not among them."""
    running = sweep(
        "s2",
        ended_at=None,
        state=SweepState.RUNNING,
        rounds=(RoundRecord(number=1),),
        cleared_nodes=("n1",),
        failed_fabric=(FailedFabric(leaves=("l1",), confidence=1.0, reasons=()),),
    )
    page = fleet_page(facts(row("n1"), sweeps=(running, sweep())))
    assert [(one.id, one.progress) for one in page.sweeps.items] == [("s2", "round 1, 1 cleared, 1 bad link")]


def test_a_convicted_leaf_is_on_the_map():
    """For a day; later the finding itself, or the next sweep, says how it is."""
    convicted = FailedFabric(leaves=("l1",), confidence=1.0, reasons=())
    where = {"leaf": "l1"}
    for created_at, leaves in ((NOW - 300, ["l1"]), (NOW - 90_000, [])):
        made = facts(row("n1", place=where), sweeps=(sweep(failed_fabric=(convicted,), created_at=created_at),))
        assert [leaf.name for leaf in fleet_page(made).map.bad_leaves] == leaves


def test_an_empty_fleet_has_an_empty_page():
    """Nothing is divided by the number of nodes."""
    page = fleet_page(facts())
    assert (page.headline.nodes, page.headline.parts, page.map.blocks, page.causes.total) == (0, (), (), 0)
