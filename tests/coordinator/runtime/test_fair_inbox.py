"""The queue of messages that wait to be decoded."""

from hypothesis import given
from hypothesis import strategies as st

from muster_coordinator.runtime.fair_inbox import (
    MOST_BYTES,
    MOST_BYTES_OF_A_NODE,
    TURNS,
    FairInbox,
    Lane,
)


def filled(*said: tuple[str, str, int]) -> FairInbox[str]:
    inbox = FairInbox[str]()
    for node, message, size in said:
        assert inbox.put(node, message, size, 0.0)
    return inbox


def test_nodes_take_turns():
    """A node with one message waits for at most one message of each other node."""
    inbox = filled(*(("n1", f"a{n}", 1) for n in range(5)), ("n2", "b0", 1), ("n3", "c0", 1), ("n2", "b1", 1))
    assert inbox.take(100, MOST_BYTES, 0.0) == ["a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4"]
    assert (len(inbox), inbox.bytes) == (0, 0)


def test_a_batch_is_bounded_in_messages_and_bytes():
    """The rest comes with the next batch, and no node loses its turn."""
    inbox = filled(("n1", "a0", 1), ("n1", "a1", 100), ("n2", "b0", 1), ("n2", "b1", 1))
    assert inbox.take(1, 100, 0.0) == ["a0"]
    assert inbox.take(100, 100, 0.0) == ["b0", "a1"]
    assert inbox.take(100, 0.5, 0.0) == ["b1"]
    assert inbox.take(100, 100, 0.0) == []


def test_the_queue_of_a_node_is_bounded_in_bytes():
    """One message always fits, messages of other nodes do not count, and a batch makes room."""
    inbox = filled(("n1", "a0", MOST_BYTES_OF_A_NODE + 1))
    assert not inbox.put("n1", "a1", 1, 0.0)
    assert inbox.put("n2", "b0", MOST_BYTES_OF_A_NODE, 0.0)
    assert not inbox.put("n2", "b1", 1, 0.0)
    assert inbox.take(1, MOST_BYTES, 0.0) == ["a0"]
    assert inbox.put("n1", "a2", 1, 0.0)
    assert inbox.bytes == MOST_BYTES_OF_A_NODE + 1


def test_a_node_with_an_urgent_message_goes_first():
    """With what it sent before that, such as its inventory; what it sent later takes its turn."""
    inbox = filled(("n1", "a0", 1), ("n1", "a1", 1), ("n2", "b0", 1))
    assert inbox.put("n2", "b1", 1, 0.0, Lane.URGENT)
    assert inbox.put("n2", "b2", 1, 0.0)
    assert inbox.take(100, MOST_BYTES, 0.0) == ["b0", "b1", "a0", "b2", "a1"]


def test_urgent_messages_leave_turns_to_the_others():
    """A node that calls everything urgent holds up nobody for long."""
    inbox = filled(("n1", "a", 1))
    for number in range(2 * TURNS):
        assert inbox.put("n2", f"b{number}", 1, 0.0, Lane.URGENT)
    assert inbox.take(100, MOST_BYTES, 0.0).index("a") == TURNS


def test_what_the_broker_kept_goes_last():
    """It goes before a live message of its own node, and is not counted as live."""
    inbox = FairInbox[str]()
    for node in ("n1", "n2", "n3"):
        assert inbox.put(node, f"kept {node}", 10, 0.0, Lane.KEPT)
    assert inbox.put("n3", "live n3", 1, 0.0)
    assert inbox.put("n4", "live n4", 2, 0.0)
    assert (len(inbox), inbox.bytes, inbox.live, inbox.live_bytes) == (5, 33, 2, 3)
    assert inbox.take(5, MOST_BYTES, 0.0) == ["kept n3", "live n4", "live n3", "kept n1", "kept n2"]
    assert (inbox.live, inbox.live_bytes) == (0, 0)


def test_what_the_broker_kept_gets_its_turns():
    """Of every TURNS + 1 messages one is a kept one, even while live messages wait all the time."""
    inbox = filled(*(("n1", "live", 1) for _ in range(5 * TURNS)))
    for number in range(3):
        assert inbox.put(f"k{number}", "kept", 1, 0.0, Lane.KEPT)
    assert inbox.take(3 * (TURNS + 1), MOST_BYTES, 0.0) == [*["live"] * TURNS, "kept"] * 3


def test_it_knows_how_long_messages_have_waited():
    """That of the last one that was taken."""
    inbox = filled(("n1", "a", 1))
    inbox.put("n1", "b", 1, 3.0)
    inbox.take(2, MOST_BYTES, 5.0)
    assert inbox.waited_s == 2.0


PUT = st.tuples(st.sampled_from("abc"), st.integers(0, 1 << 20), st.sampled_from(Lane))


@given(st.lists(PUT | st.integers(1, 5), max_size=60))
def test_nothing_is_lost_or_overtaken(steps):
    """Each node's messages come once and in order, and the bytes are counted correctly."""
    inbox, put, taken = FairInbox[tuple[str, int, int]](), [], []
    for number, step in enumerate(steps):
        if isinstance(step, int):
            taken += inbox.take(step, MOST_BYTES, 0.0)
        elif inbox.put(step[0], (step[0], number, step[1]), step[1], 0.0, step[2]):
            put.append((step[0], number, step[1]))
    assert inbox.bytes == sum(size for *_, size in put) - sum(size for *_, size in taken)
    while rest := inbox.take(3, MOST_BYTES, 0.0):
        taken += rest
    assert sorted(taken) == sorted(put)
    for node in "abc":
        assert [message for message in taken if message[0] == node] == [
            message for message in put if message[0] == node
        ]
