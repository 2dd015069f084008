"""A broker that is stopped and started again, with or without warning, makes nobody lost; a killed agent is lost."""

import os
import signal
import time
from datetime import UTC, datetime, timedelta

import pytest

from muster_coordinator.evidence.heartbeats import WILL_BELIEVED_AFTER_S


def stories(fleet):
    """The kinds of all entries of all stories, by node."""
    return {
        node: [entry["kind"] for entry in fleet.api.pages("nodes", node, "story")["items"]] for node in fleet.agents
    }


def count(stories, kind):
    return sum(kinds.count(kind) for kinds in stories.values())


def lost(fleet):
    """The lost nodes of this fleet; agents that other tests have added are gone for good."""
    return [node for node in fleet.api.get("fleet")["lost"] if node in fleet.agents]


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
    back_at = datetime.now(UTC)
    eventually(lambda: connected(fleet), "all to be connected")
    eventually(lambda: fleet.ask("GET", "/readyz")[0] == 200, "the coordinator to be connected")

    later = back_at + timedelta(seconds=WILL_BELIEVED_AFTER_S + 1)

    def heard():
        assert lost(fleet) == []
        views = [fleet.api.get("nodes", node) for node in fleet.agents]
        return all(datetime.fromisoformat(view["last_seen"]) > later for view in views)

    eventually(heard, "all to be heard when every will would have been believed")
    for kind in ("lost", "back", "policy"):
        assert count(stories(fleet), kind) == count(before, kind)


def test_an_agent_that_is_killed_is_lost_soon_and_it_alone(fleet, eventually):
    """Its will is believed after some seconds, long before its heartbeat is missed."""
    before = count(stories(fleet), "lost")
    fleet.agents["n2"].kill()
    killed = time.monotonic()
    eventually(lambda: lost(fleet) == ["n2"], "n2 to be lost")
    assert 4 < time.monotonic() - killed < 20
    eventually(lambda: count(stories(fleet), "lost") > before, "the story to be stored")
    assert count(stories(fleet), "lost") == before + 1


def test_an_agent_that_is_stopped_is_lost_at_once(fleet, eventually):
    """It says goodbye."""
    stopping = time.monotonic()
    fleet.agents["n3"].stop()
    eventually(lambda: lost(fleet) == ["n3"], "n3 to be lost")
    assert time.monotonic() - stopping < 20

    def last_loss():
        story = fleet.api.pages("nodes", "n3", "story")["items"]
        return next((entry["text"] for entry in story if entry["kind"] == "lost"), None)

    eventually(lambda: last_loss() == "its agent has stopped", "the story to be stored")
