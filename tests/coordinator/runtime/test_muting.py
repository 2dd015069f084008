"""Which nodes are muted, and what the coordinator subscribes to instead."""

import pytest

from muster.wire.topics import FROM_NODE, NodeTopic, Topics
from muster_coordinator.runtime.muting import (
    COUNTED_S,
    FLOOD_BYTES,
    FLOOD_MESSAGES,
    FORGIVEN_S,
    LONGEST_MUTE_S,
    MUTED_S,
    MuteList,
    subscriptions,
)

TOPICS = Topics("lab")
REPORTS = ("n1", NodeTopic.REPORT)


def flood(mutes: MuteList, now: float) -> None:
    for number in range(FLOOD_MESSAGES):
        assert mutes.note_dropped(*REPORTS, 1, now) == (number == FLOOD_MESSAGES - 1)


def test_a_flood_is_muted_for_a_minute():
    """For too many messages or bytes; messages that come meanwhile do not count."""
    mutes = MuteList()
    flood(mutes, 100.0)
    assert mutes.muted(100.0) == {REPORTS}
    assert not mutes.note_dropped(*REPORTS, 1, 110.0)
    assert mutes.muted(100.0 + MUTED_S) == frozenset()
    assert mutes.note_dropped("n2", NodeTopic.GROUP, FLOOD_BYTES, 100.0)
    assert mutes.muted(101.0) == {REPORTS, ("n2", NodeTopic.GROUP)}


def test_an_agent_that_sends_dropped_messages_again_is_not_muted():
    """Only messages within ten seconds count together."""
    mutes = MuteList()
    for number in range(100):
        now = number * (COUNTED_S + 1)
        assert not any(mutes.note_dropped(*REPORTS, 1, now) for _ in range(FLOOD_MESSAGES - 1))


def test_each_mute_lasts_twice_as_long():
    """Up to a limit. After an hour without a flood, the first duration applies again."""
    mutes, now, lengths = MuteList(), 0.0, []
    for _ in range(6):
        flood(mutes, now)
        began = now
        while mutes.muted(now):
            now += 10.0
        lengths.append(now - began)
    assert lengths == [MUTED_S, 2 * MUTED_S, 4 * MUTED_S, 8 * MUTED_S, LONGEST_MUTE_S, LONGEST_MUTE_S]
    assert mutes.muted(now + FORGIVEN_S) == frozenset()
    flood(mutes, now + FORGIVEN_S)
    assert mutes.muted(now + FORGIVEN_S + MUTED_S) == frozenset()


@pytest.mark.parametrize(
    ("muted", "expected"),
    [
        (set(), {TOPICS.every_node(topic) for topic in FROM_NODE}),
        (
            {REPORTS},
            {TOPICS.every_node(topic) for topic in FROM_NODE if topic is not NodeTopic.REPORT}
            | {TOPICS.node("n2", NodeTopic.REPORT), TOPICS.node("n3", NodeTopic.REPORT)},
        ),
        (
            {REPORTS, ("n2", NodeTopic.REPORT), ("n2", NodeTopic.GROUP)},
            {TOPICS.every_node(NodeTopic.PRESENCE), TOPICS.every_node(NodeTopic.INVENTORY)}
            | {TOPICS.node("n3", NodeTopic.REPORT)}
            | {TOPICS.node("n1", NodeTopic.GROUP), TOPICS.node("n3", NodeTopic.GROUP)},
        ),
    ],
)
def test_subscriptions_leave_out_muted_nodes(muted, expected):
    """Nodes are subscribed to one by one only for the kinds of message with which a node floods."""
    assert subscriptions(TOPICS, muted, ["n1", "n2", "n3"]) == expected
