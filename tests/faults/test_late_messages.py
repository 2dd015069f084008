"""What members say again, late, out of order, or of a group that nobody knows: the sweep's record stays as it is."""

import json
import threading
import time
import urllib.request
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt import publish
from paho.mqtt.enums import CallbackAPIVersion

from muster.model import Finding, RankResult, Severity, Verdict
from muster.wire.codec import encode
from muster.wire.messages import Accepted, Declined, Finished, Progress, Ready
from muster.wire.topics import NodeTopic, Topics

TOPICS = Topics("default")
NODES = ("n1", "n2", "n3", "n4")


@pytest.fixture
def overheard(fleet):
    """Topic and payload of all that members say of their groups, in the order in which they say it."""
    heard, subscribed = [], threading.Event()
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.on_message = lambda _client, _userdata, message: heard.append((message.topic, message.payload))
    client.on_subscribe = lambda *_: subscribed.set()
    client.connect("127.0.0.1", fleet.broker.port)
    client.subscribe(TOPICS.every_node(NodeTopic.GROUP), qos=1)
    client.loop_start()
    assert subscribed.wait(30)
    yield heard
    client.disconnect()
    client.loop_stop()


def send(fleet, messages):
    """Publishes them, and returns when the coordinator has stored whatever it makes of them."""
    published: list[Any] = [{"topic": topic, "payload": payload, "qos": 1} for topic, payload in messages]
    publish.multiple(published, hostname="127.0.0.1", port=fleet.broker.port)
    fleet.run("n1", "mischief")  # which it hears of, and stores, after that


def inventions(group):
    """All that any node of the fleet could say of `group`, with its topic; nothing of it is true."""
    finding = Finding(code="meeting.failed", summary="it is bad", severity=Severity.ERROR)
    result = RankResult(rank=0, verdict=Verdict.FAIL, findings=(finding,), metrics={"rate": 0.1}, duration_s=0.1)
    said: tuple[tuple[Any, dict[str, Any]], ...] = (
        (Accepted, {"address": "192.0.2.1", "port": 1, "ranks": 8}),
        (Ready, {}),
        (Progress, {"text": "going on"}),
        (Finished, {"ranks": (result,)}),
        (Declined, {"reason": "busy"}),
    )
    for node in NODES:
        for kind, content in said:
            message = kind(sent_at=time.time(), node=node, group=group, **content)
            yield TOPICS.node(node, NodeTopic.GROUP), encode(message)


def record(fleet, sweep):
    """The sweep's record, to the byte."""
    with urllib.request.urlopen(f"{fleet.url}/api/v1/sweeps/{sweep}", timeout=20) as answer:
        return answer.read()


def half_done(fleet, book, eventually):
    """A sweep of two pairs of which one has ended and the other stays together; and the id of the group that ended."""
    sweep = fleet.start_sweep(*NODES, strategy="pairs", book=str(book), hosts=NODES)
    for node in NODES:
        book.pid(f"met-{node}")
    book.write(f"over-{fleet.sweep(sweep)['rounds'][0]['groups'][0]['members'][0]}")

    def groups():
        return {group["state"]: group["id"] for group in fleet.sweep(sweep)["rounds"][0]["groups"]}

    return sweep, eventually(lambda: groups().keys() == {"ENDED", "RUNNING"} and groups()["ENDED"], "one pair to end")


def test_messages_about_a_group_that_has_ended_change_nothing(fleet, book, overheard, eventually):
    """Neither while its sweep goes on nor afterwards: the same again, backwards, and inventions of every kind."""
    sweep, group = half_done(fleet, book, eventually)
    again = [(topic, payload) for topic, payload in overheard if json.loads(payload)["group"] == group]
    assert {json.loads(payload)["kind"] for _, payload in again} >= {"accepted", "ready", "finished"}
    late = [*again, *reversed(again), *inventions(group)]
    before = record(fleet, sweep)
    send(fleet, late)
    assert record(fleet, sweep) == before
    book.write("over")
    assert fleet.ended_sweep(sweep)["verdict"] == "PASS"
    before = record(fleet, sweep)
    send(fleet, late)
    assert record(fleet, sweep) == before


def test_messages_about_a_group_that_nobody_knows_change_nothing(fleet, book, eventually):
    """Whether of a sweep that goes on, in an epoch that was or a number that is not, or of none at all."""
    sweep, group = half_done(fleet, book, eventually)
    before = record(fleet, sweep)
    for unknown in (f"{group}9", f"{sweep}-1.1", sweep, "nobody-1.1", "group"):
        send(fleet, inventions(unknown))
    assert record(fleet, sweep) == before
    book.write("over")
    assert fleet.ended_sweep(sweep)["verdict"] == "PASS"
