"""A bad node goes out of service once and comes back, whenever the coordinator is killed on the way.

The nodes are real agents with simulated devices, the scheduler is the executable of the plugin `script`, which keeps a
book about what it was told and what it did, and waits where a test wants it to.
"""

import contextlib
import json
import sqlite3
from functools import partial

import pytest
from tests.faults.desk import Desk
from tests.faults.fleet import Fleet

NODES = ("n1", "n2", "n3", "n4", "n5", "n6", "n7")
FAULT = [{"kind": "missing", "device": 0}]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    return Desk(tmp_path_factory.mktemp("desk"))


@pytest.fixture(scope="module")
def enforced(tmp_path_factory, new_mosquitto, desk):
    """Seven agents and a coordinator that may take all but one out, without waiting."""
    with new_mosquitto() as broker:
        fleet = Fleet(tmp_path_factory.mktemp("enforced"), broker, desk.path, nodes=NODES)
        fleet.coordinator.settings["quarantine"] = {
            "mode": "enforce",
            "budget": {"share": "100%", "domain_share": "100%", "per_minute": 6000},
            "mass_event": {"nodes": 100},
            "returning": {"wait_s": 0.0, "pause_s": 0.0, "passes": 1},
        }
        fleet.coordinator.settings["plugins"] = {"script": {"actor": {"path": str(desk.scheduler), "can_cordon": True}}}
        fleet.start_coordinator()
        for agent in fleet.agents.values():
            agent.start()
        yield fleet
        fleet.end()


@pytest.fixture
def quarantine(enforced, desk, eventually):
    """The fleet when everything runs and the scheduler has every node that nobody has spoilt yet in service."""
    if not enforced.coordinator.runs:
        enforced.start_coordinator()
    for node in NODES:
        eventually(partial(is_settled, enforced, node), f"{node} to be in service or out")
    return enforced


def case(fleet, node):
    """What is decided about a node; None before it was heard of."""
    status, _, answer = fleet.ask("GET", f"/api/v1/nodes/{node}/case")
    return answer if status == 200 else None


def is_settled(fleet, node):
    """Whether what was decided about a node has been done."""
    known = case(fleet, node)
    settled = known is not None and known["state"] in ("IN_SERVICE", "CORDONED")
    return settled and is_done(fleet, node, known["state"])


def is_done(fleet, node, state):
    """Whether a node is in this state, and the scheduler has done what follows from it."""
    known = case(fleet, node)
    outcome = known["outcomes"].get("script")
    return known["state"] == state and outcome is not None and outcome["effect"] == "DONE"


def spoil(fleet, node, faults=FAULT):
    """Starts a node's agent again, with a fault or without any."""
    fleet.agents[node].stop()
    start_spoilt(fleet, node, faults)


def start_spoilt(fleet, node, faults=FAULT):
    agent = fleet.agents[node]
    agent.settings["plugins"]["simulated"] = {"enabled": True, "devices": 1, "faults": faults}
    agent.start()


@contextlib.contextmanager
def locked_database(fleet):
    """Nothing can be stored for as long as the context lasts."""
    path = f"{fleet.coordinator.settings['data_dir']}/muster.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")


def history(fleet, node, after):
    """The transitions of a node into this state."""
    items = fleet.api.get("quarantine", "history", node=node)["items"]
    return [item["transition"] for item in items if item["transition"]["after"] == after]


def stored_story(fleet, node):
    """A node's story, kinds and texts, once its end is stored: what an actor has answered."""
    story = [(it["kind"], it["text"]) for it in reversed(fleet.api.pages("nodes", node, "story")["items"])]
    return story if story[-1][0] == "action" else None


def kill_before_it_is_stored(fleet, desk, node, eventually):
    fleet.agents[node].stop()  # before the lock, for which the coordinator waits 10 s at most
    with locked_database(fleet):
        start_spoilt(fleet, node)
        eventually(lambda: case(fleet, node)["state"] == "CORDONED", "the decision")
        assert desk.book("called", node, "CORDONED") == []
        fleet.coordinator.kill()


def kill_before_it_is_done(fleet, desk, node, eventually):
    with desk.waiting("before"):
        spoil(fleet, node)
        eventually(lambda: desk.book("called", node, "CORDONED"), "the call")
        fleet.coordinator.kill()
        assert desk.book("did", node, "CORDONED") == []


def kill_before_it_is_answered(fleet, desk, node, eventually):
    with desk.waiting("after"):
        spoil(fleet, node)
        eventually(lambda: desk.book("did", node, "CORDONED"), "the deed")
        fleet.coordinator.kill()


def kill_before_the_outcome_is_stored(fleet, desk, node, eventually):
    with contextlib.ExitStack() as stack:
        with desk.waiting("after"):
            spoil(fleet, node)
            eventually(lambda: desk.book("did", node, "CORDONED"), "the deed")
            stack.enter_context(locked_database(fleet))
        eventually(lambda: is_done(fleet, node, "CORDONED"), "the outcome")
        fleet.coordinator.kill()


KILLS = {
    "n1": kill_before_it_is_stored,
    "n2": kill_before_it_is_done,
    "n3": kill_before_it_is_answered,
    "n4": kill_before_the_outcome_is_stored,
}


@pytest.mark.parametrize("node", KILLS)
def test_whenever_the_coordinator_is_killed_the_node_goes_out_once(quarantine, desk, node, eventually):
    """One decision, told again under the same id where nobody knows what came of it, and done once."""
    KILLS[node](quarantine, desk, node, eventually)
    quarantine.start_coordinator()
    eventually(lambda: is_done(quarantine, node, "CORDONED"), f"{node} to be out")
    (transition,) = history(quarantine, node, "CORDONED")
    assert set(desk.book("called", node, "CORDONED")) == {transition["id"]}
    assert desk.book("did", node, "CORDONED") == [transition["id"]]
    assert (desk.state(node), transition["codes"]) == ("out", ["simulated.devices_missing"])

    eventually(lambda: quarantine.api.get("quarantine", "history", node=node)["items"][0]["told"], "that to be stored")
    quarantine.coordinator.kill()
    called = desk.book("called", node, "CORDONED")
    quarantine.start_coordinator()
    eventually(lambda: quarantine.api.get("quarantine", "budget")["actors"], "the actors")
    assert is_done(quarantine, node, "CORDONED")
    assert desk.book("called", node, "CORDONED") == called


@pytest.mark.torch
def test_a_node_whose_fault_is_gone_is_tested_and_comes_back(quarantine, desk, eventually):
    """Its story tells each step, in order, and the scheduler did what had to be done once."""
    spoil(quarantine, "n5")
    eventually(lambda: is_done(quarantine, "n5", "CORDONED"), "n5 to be out")
    spoil(quarantine, "n5", faults=[])
    eventually(lambda: is_done(quarantine, "n5", "IN_SERVICE"), "n5 to be back")
    assert [len(desk.book("did", "n5", state)) for state in ("CORDONED", "PROBATION", "IN_SERVICE")] == [1, 0, 2]
    assert desk.state("n5") == "in"
    story = eventually(partial(stored_story, quarantine, "n5"), "the story to be stored")
    after = iter(story[[kind for kind, _ in story].index("found") :])
    for kind, text in (
        ("found", "simulated.devices_missing"),
        ("health", "to SUSPECT"),
        ("policy", "gpu-missing"),
        ("service", "IN_SERVICE to CORDONED"),
        ("action", "script: DONE"),
        ("back", "heard again"),
        ("service", "CORDONED to PROBATION: it was away and is back"),
        ("run_requested", "simulated"),
        ("test", "PASS"),
        ("service", "PROBATION to IN_SERVICE"),
        ("action", "script: DONE"),
    ):
        assert any(it[0] == kind and text in it[1] for it in after), (kind, text, story)
    assert ("policy", "No finding requires draining any more") in story


def test_a_dry_run_shows_what_would_be_done_and_does_nothing(quarantine, desk, eventually):
    """And when it is over, what it decided counts no more: the node goes because it is still bad."""
    rules = quarantine.coordinator.settings["quarantine"]
    quarantine.coordinator.stop()
    rules["mode"] = "dry-run"
    quarantine.start_coordinator()
    spoil(quarantine, "n6")
    eventually(
        lambda: case(quarantine, "n6")["outcomes"].get("script", {}).get("effect") == "WOULD", "what would be done"
    )
    view = quarantine.api.get("nodes", "n6")
    assert (view["service"], view["dry_run"]) == ("CORDONED", True)
    assert "would run" in case(quarantine, "n6")["outcomes"]["script"]["detail"]
    assert (desk.book("called", "n6", "CORDONED"), desk.state("n6")) == ([], "in")

    quarantine.coordinator.kill()
    quarantine.start_coordinator()
    assert quarantine.api.get("nodes", "n6")["dry_run"] is True
    quarantine.coordinator.stop()
    rules["mode"] = "enforce"
    quarantine.start_coordinator()
    eventually(lambda: is_done(quarantine, "n6", "CORDONED"), "n6 to be out")
    assert [it["dry_run"] for it in history(quarantine, "n6", "CORDONED")] == [False, True]
    assert desk.state("n6") == "out"


def test_a_start_in_enforce_cordons_nobody_for_a_fault_that_is_over(quarantine, desk, eventually):
    """It was found in observe mode, and mended while no coordinator ran: the agent kept the passes in its outbox."""
    rules, agent = quarantine.coordinator.settings["quarantine"], quarantine.agents["n7"]
    quarantine.coordinator.stop()
    rules["mode"] = "observe"
    quarantine.start_coordinator()
    spoil(quarantine, "n7")
    eventually(lambda: (case(quarantine, "n7")["requirement"] or {}).get("unproven") == [], "the fault to be found")
    quarantine.coordinator.stop()
    before = agent.kept_runs()
    spoil(quarantine, "n7", faults=[])
    eventually(lambda: len(agent.kept_runs() - before) > 3, "passes in the outbox")
    rules["mode"] = "enforce"
    quarantine.start_coordinator()
    eventually(lambda: quarantine.api.get("nodes", "n7")["health"] == "HEALTHY", "the passes")
    assert (case(quarantine, "n7")["state"], case(quarantine, "n7")["requirement"]) == ("IN_SERVICE", None)
    assert desk.book("called", "n7", "CORDONED") == []


@pytest.mark.parametrize(
    ("actor", "said"),
    [
        (None, "enable one"),
        ({"path": "/bin/true"}, "script only notifies"),
        ({"path": "/nonexistent/actor", "can_cordon": True}, "plugins.script.actor.path"),
    ],
)
def test_enforce_without_an_actor_that_works_does_not_start(muster, tmp_path, actor, said):
    """One line that says what each actor lacks; exit code 69."""
    env = {
        "MUSTER_DATA_DIR": str(tmp_path),
        "MUSTER_HTTP__LISTEN": "127.0.0.1:0",
        "MUSTER_BROKER__LISTEN": "127.0.0.1:0",
        "MUSTER_QUARANTINE": json.dumps({"mode": "enforce", "budget": {"share": "10%"}}),
        "MUSTER_PLUGINS": json.dumps({"script": {"actor": actor}} if actor else {}),
    }
    refused = muster("coordinator", env=env)
    last = refused.stderr.splitlines()[-1]
    assert (refused.returncode, refused.stdout) == (69, "")
    assert "enforce" in last
    assert said in last
    assert "Traceback" not in refused.stderr
