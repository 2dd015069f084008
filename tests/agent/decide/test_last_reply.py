"""When the agent repeats its last reply about a group."""

from muster.wire.messages import CoordinatorPresence, Ready
from muster_agent.decide.last_reply import REPEAT_REPLY_S, LastReply

READY = Ready(sent_at=100.0, node="n1", group="s-1")


def presence(connection: str, *, online: bool = True) -> CoordinatorPresence:
    return CoordinatorPresence(sent_at=0.0, online=online, epoch=1, connection=connection)


def replied_to(connection: str) -> LastReply:
    """The agent has heard the coordinator on this connection, and has replied."""
    last = LastReply()
    assert last.heard(presence(connection), 99.0) is None
    last.sent(READY)
    return last


def test_a_coordinator_that_was_there_does_not_get_it_again():
    """However often its presence comes."""
    last = replied_to("a")
    assert [last.heard(presence("a"), 101.0 + number) for number in range(3)] == [None] * 3


def test_a_coordinator_on_a_new_connection_gets_it_once():
    """It was not there, or has lost what the broker had for it."""
    last = replied_to("a")
    assert last.heard(presence("a", online=False), 101.0) is None
    again = last.heard(presence("b"), 102.0)
    assert again == READY
    last.sent(again)
    assert last.heard(presence("b"), 103.0) is None


def test_it_is_repeated_after_a_loss_of_the_own_connection():
    """The broker may have gone with the reply, and the coordinator's connection need not have been to the same one."""
    last = replied_to("a")
    last.connected()
    assert last.heard(presence("a"), 102.0) == READY


def test_an_older_coordinator_gets_it_at_each_presence():
    """It does not name its connection."""
    last = replied_to("")
    assert last.heard(presence(""), 101.0) == READY
    last.sent(READY)
    assert last.heard(presence(""), 111.0) == READY


def test_an_old_reply_is_not_repeated():
    """Its group has ended."""
    last = replied_to("a")
    assert last.heard(presence("b"), READY.sent_at + REPEAT_REPLY_S) is None


def test_without_a_reply_there_is_nothing_to_repeat():
    """As long as the node was in no group."""
    assert LastReply().heard(presence("a"), 1.0) is None
