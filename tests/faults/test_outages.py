"""A broker that is stopped and started again, with or without warning, makes nobody lost; a killed agent is lost."""

import os
import signal
import time

import pytest


def stories(fleet):
    """The kinds of all entries of all stories, by node."""
    return {node: [entry["kind"] for entry in fleet.api.get("nodes", node, "story")["items"]] for node in fleet.agents}


def count(fleet, kind):
    return sum(kinds.count(kind) for kinds in stories(fleet).values())


def connected(fleet):
    return all(agent.health["broker_connected"] for agent in fleet.agents.values())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_broker_that_restarts_makes_nobody_lost(fleet, eventually, number):
    """Stopped in order, it sends the last will of every agent before it is gone. No story says anything about it."""
    before = stories(fleet)
    os.kill(fleet.broker.pid, number)
    eventually(lambda: not fleet.broker.runs, "the broker to end")
    eventually(lambda: not any(agent.health["broker_connected"] for agent in fleet.agents.values()), "all to be off")
    fleet.broker.start()
    back_at = time.time()
    eventually(lambda: connected(fleet), "all to be connected")
    eventually(lambda: fleet.ask("GET", "/readyz")[0] == 200, "the coordinator to be connected")

    def heard():
        return [view["last_seen"] > back_at and not view["lost"] for view in fleet.api.pages("nodes")["items"]]

    eventually(lambda: all(heard()), "all to be heard")
    time.sleep(6)  # longer than a will takes to be believed
    after = stories(fleet)
    for node in fleet.agents:
        new = after[node][: len(after[node]) - len(before[node])] or after[node][len(before[node]) :]
        assert not {"lost", "back", "policy"}.intersection(new), (node, new)
    assert fleet.api.get("fleet")["lost"] == []


def test_an_agent_that_is_killed_is_lost_soon_and_it_alone(fleet, eventually):
    """Its will is believed after some seconds, long before its heartbeat is missed."""
    lost = count(fleet, "lost")
    fleet.agents["n2"].kill()
    killed = time.monotonic()
    eventually(lambda: fleet.api.get("fleet")["lost"] == ["n2"], "n2 to be lost")
    assert 4 < time.monotonic() - killed < 20
    assert count(fleet, "lost") == lost + 1


def test_an_agent_that_is_stopped_is_lost_at_once(fleet, eventually):
    """It says goodbye."""
    stopping = time.monotonic()
    fleet.agents["n3"].stop()
    eventually(lambda: fleet.api.get("fleet")["lost"] == ["n3"], "n3 to be lost")
    (entry,) = [it for it in fleet.api.get("nodes", "n3", "story")["items"] if it["kind"] == "lost"][:1]
    assert entry["text"] in ("its agent has stopped", "its connection ended, and it was not back after 5 s")
    assert time.monotonic() - stopping < 20
