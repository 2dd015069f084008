"""Whatever dies and comes back, every run that an agent has kept is stored, and stored once."""

import pytest


def check_delivered(fleet, *nodes):
    """Every run that a node has ever kept is in the database: none is missing, none is there twice."""
    for node in nodes:
        fleet.wait_until_stored(node)
        runs = fleet.runs(node)
        numbers = sorted(run["seq"] for run in runs)
        assert numbers == list(range(1, len(runs) + 1))
        assert len({run["id"] for run in runs}) == len(runs)
        assert {run["id"] for run in runs} <= fleet.agents[node].kept_runs()


def wait_for_results(fleet, eventually, *nodes):
    """Until each node has results that nobody takes."""
    for node in nodes:
        eventually(lambda node=node: fleet.agents[node].health["outbox"] >= 3, f"{node} to keep results")


def test_results_come_through_a_broker_that_is_killed_and_an_agent_with_it(fleet, eventually):
    """What was measured while the broker was gone arrives, even from an agent that was killed meanwhile."""
    fleet.broker.stop()
    wait_for_results(fleet, eventually, *fleet.agents)
    before = {node: agent.kept_runs() for node, agent in fleet.agents.items()}
    fleet.agents["n2"].kill()
    fleet.broker.start()
    fleet.agents["n2"].start()
    fleet.set_right()
    check_delivered(fleet, *fleet.agents)
    assert all(runs for runs in before.values())


def test_results_come_through_a_coordinator_that_is_killed(fleet, eventually):
    """What it had not stored comes again to the next one, and what it had stored is not stored again."""
    fleet.coordinator.kill()
    wait_for_results(fleet, eventually, *fleet.agents)
    fleet.start_coordinator()
    check_delivered(fleet, *fleet.agents)


@pytest.mark.parametrize("victim", ["coordinator", "agent"])
def test_results_come_through_a_kill_at_any_moment(fleet, eventually, victim):
    """Killed while results flow, not while they wait: between sending, storing and acknowledging."""
    part = fleet.coordinator if victim == "coordinator" else fleet.agents["n3"]
    body = {"check": "mischief"}
    asked = {fleet.api.post("nodes", "n3", "runs", body=body)["id"] for _ in range(20)}  # too many to be done yet
    eventually(lambda: fleet.agents["n3"].kept_runs() & asked, "some of the runs to have ended")
    part.kill()
    fleet.set_right()
    check_delivered(fleet, "n3")


def test_a_group_outlives_a_broker_that_is_restarted(fleet, book, eventually):
    """Its ranks go on; what they say at the end counts even when the coordinator is the last to be back."""
    sweep = fleet.start_sweep("n1", "n2", "n3", book=str(book), hosts=["n1"])
    for node in ("n1", "n2", "n3"):
        book.pid(f"met-{node}")
    fleet.broker.stop()
    with fleet.coordinator.held_up():
        book.write("over")
        eventually(book.is_closed, "the ranks to end")
        fleet.broker.start()
        fleet.wait_until_free("n1", "n2", "n3")  # connected again, and with nothing left to do
    ended = fleet.ended_sweep(sweep)
    assert (ended["state"], ended["verdict"]) == ("finished", "PASS"), ended
    check_delivered(fleet, "n1", "n2", "n3")
