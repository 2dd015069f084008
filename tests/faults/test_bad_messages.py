"""Messages that nobody should have sent: each is counted, logged once for its kind and dropped, and nothing else."""

import time
from collections import Counter
from typing import Any

import pytest
from paho.mqtt import publish

from muster.wire.codec import MAX_MESSAGE_BYTES, encode
from muster.wire.messages import Abort, CoordinatorPresence, Presence, RunCheck, Start
from muster.wire.topics import FROM_NODE, NodeTopic, Topics

TOPICS = Topics("default")
KINDS = ("malformed", "oversized", "unknown_version", "wrong_node", "unknown_topic", "old_epoch", "expired")

BAD_ANYWHERE = [
    (b"\xff\x00garbage", "malformed"),
    (b"[]", "malformed"),
    (b"{}", "malformed"),
    (b"[" * 100_000, "malformed"),
    (b'{"schema": 1, "id": "x", "sent_at": "soon", "node": "n1"}', "malformed"),
    (b'{"schema": 2, "id": "x", "sent_at": 1.0, "node": "n1"}', "unknown_version"),
    (b" " * (MAX_MESSAGE_BYTES + 1), "oversized"),
]


def send(fleet, messages):
    publish.multiple(
        [{"topic": topic, "payload": payload, "qos": 1} for topic, payload in messages],
        hostname="127.0.0.1",
        port=fleet.broker.port,
    )


def refused(counter, name):
    return {kind: counter(name, kind=kind) for kind in KINDS}


def check_counted(eventually, read, before, messages):
    expected = {kind: before[kind] + count for kind, count in Counter(kind for *_, kind in messages).items()}
    eventually(lambda: {kind: read()[kind] for kind in expected} == expected, f"{expected} to be counted")
    assert read() == before | expected


def logged_kinds(part):
    return Counter(line["kind"] for line in part.log("message_refused"))


def check_all_is_well(fleet, book):
    """A check runs, and a sweep passes."""
    assert fleet.run("n1", "mischief")["verdict"] == "PASS"
    assert fleet.ended_sweep(fleet.start_sweep("n1", "n2", book=str(book)))["verdict"] == "PASS"


def test_a_node_says_what_it_should_not(fleet, book, eventually):
    """The coordinator drops bad messages on every topic, and records a finding for the node, but adds no node."""
    foreign = encode(Presence(sent_at=time.time(), node="n2", online=False))
    bad = [
        *(
            (TOPICS.node(node, topic), *each)
            for node in ("n1", "ghost")
            for topic in FROM_NODE
            for each in BAD_ANYWHERE
        ),
        (TOPICS.node("n1", NodeTopic.PRESENCE), foreign, "wrong_node"),
        (TOPICS.node("", NodeTopic.REPORT), b"{}", "unknown_topic"),
    ]

    def read():
        return refused(fleet.counter, "muster_messages_refused_total")

    before = read()
    stories = {node: fleet.api.pages("nodes", node, "story")["items"] for node in ("n1", "n2")}
    send(fleet, [(topic, payload) for topic, payload, _ in bad])
    check_counted(eventually, read, before, bad)
    assert logged_kinds(fleet.coordinator) == dict.fromkeys(
        ("malformed", "oversized", "unknown_version", "wrong_node", "unknown_topic"), 1
    )
    assert fleet.ask("GET", "/api/v1/nodes/ghost")[0] == 404
    assert not fleet.api.get("nodes", "n2")["lost"]

    def codes():
        return {finding["code"] for finding in fleet.api.get("nodes", "n1")["findings"]}

    eventually(lambda: "agent.message_refused" in codes(), "the finding against the node")
    story = fleet.api.pages("nodes", "n1", "story")["items"]
    new_steps = {step["kind"] for step in story[: len(story) - len(stories["n1"])]}
    assert new_steps <= {"misconduct", "health", "policy"}
    assert fleet.api.pages("nodes", "n2", "story")["items"] == stories["n2"]
    check_all_is_well(fleet, book)


def test_a_topic_that_nobody_knows_is_heard_by_nobody(fleet, book):
    """Neither part subscribes to what it would not understand."""
    counted = fleet.counter("muster_messages_refused_total", kind="unknown_topic")
    topics = [
        "muster/v1/default/node/n1/weather",
        f"{TOPICS.node('n1', NodeTopic.REPORT)}/more",
        "muster/v9/default",
        "other",
    ]
    send(fleet, [(topic, b"{}") for topic in topics])
    check_all_is_well(fleet, book)
    assert fleet.counter("muster_messages_refused_total", kind="unknown_topic") == counted


@pytest.mark.parametrize("topic", ["command", "ack", "coordinator", "references"])
def test_an_agent_hears_what_it_should_not(fleet, book, eventually, topic):
    """On every topic that an agent listens to: dropped, its results are kept and its coordinator stays the same."""
    agent = fleet.agents["n1"]
    name = getattr(TOPICS, topic, None) or TOPICS.node("n1", NodeTopic(topic))

    def read():
        return refused(agent.counter, "muster_agent_refused_messages_total")

    before = read()
    send(fleet, [(name, payload) for payload, _ in BAD_ANYWHERE])
    check_counted(eventually, read, before, BAD_ANYWHERE)
    assert logged_kinds(agent) == {"malformed": 1, "oversized": 1, "unknown_version": 1}
    check_all_is_well(fleet, book)


def test_orders_that_are_too_old_are_not_carried_out(fleet, book, eventually):
    """What an earlier coordinator ordered, or what has expired, is counted and nothing runs for it."""
    agent, now = fleet.agents["n1"], time.time()
    epoch = int(fleet.counter("muster_epoch"))
    old: dict[str, Any] = {"sent_at": now, "epoch": epoch - 1, "expires_at": now + 60}
    late: dict[str, Any] = {"sent_at": now - 60, "epoch": epoch, "expires_at": now - 30}
    orders = [
        (RunCheck(**old, run="of-the-old-epoch", check="mischief"), "old_epoch"),
        (Start(**old, group="g"), "old_epoch"),
        (Abort(**old, group="g", reason="old"), "old_epoch"),
        (RunCheck(**late, run="too-late", check="mischief"), "expired"),
    ]

    def read():
        return refused(agent.counter, "muster_agent_refused_messages_total")

    before = read()
    send(fleet, [(TOPICS.node("n1", NodeTopic.COMMAND), encode(order)) for order, _ in orders])
    check_counted(eventually, read, before, orders)
    check_all_is_well(fleet, book)
    assert not {"of-the-old-epoch", "too-late"} & {run["id"] for run in fleet.runs("n1", "mischief")}


def test_an_old_coordinator_does_not_lead_again(fleet, book):
    """An agent in a group stays in it when a coordinator of an earlier epoch speaks up."""
    sweep = fleet.start_sweep("n1", "n2", book=str(book), hosts=["n1"])
    for node in ("n1", "n2"):
        book.pid(f"met-{node}")
    send(fleet, [(TOPICS.coordinator, encode(CoordinatorPresence(sent_at=time.time(), online=True, epoch=1)))])
    assert fleet.run("n1", "mischief")["verdict"] == "PASS"  # which it hears of after that
    assert not book.is_closed()
    book.write("over")
    assert fleet.ended_sweep(sweep)["verdict"] == "PASS"
