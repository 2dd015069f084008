"""The topics of a fleet: their names, and how they are read back."""

import pytest
from tests.cases import cases

from muster.errors import RemoteError
from muster.wire.topics import FROM_NODE, TO_NODE, NodeTopic, Topics

TOPICS = Topics("lab")


def test_topic_names():
    """The names are as the protocol has them."""
    assert TOPICS.node("n1", NodeTopic.REPORT) == "muster/v1/lab/node/n1/report"
    assert TOPICS.every_node(NodeTopic.GROUP) == "muster/v1/lab/node/+/group"
    assert TOPICS.coordinator == "muster/v1/lab/coordinator"
    assert TOPICS.references == "muster/v1/lab/references"


@cases("topic", NodeTopic)
def test_topics_read_back(topic):
    """What was named can be parsed, and every topic belongs to one side."""
    assert TOPICS.parse_node(TOPICS.node("n.1", topic)) == ("n.1", topic)
    assert (topic in FROM_NODE) != (topic in TO_NODE)


@cases(
    "topic",
    ["", "muster/v1/lab/coordinator", "muster/v1/other/node/n1/report", "muster/v1/lab/node//report",
     "muster/v1/lab/node/n1", "muster/v1/lab/node/n1/gossip", "muster/v1/lab/node/n1/report/x"],
)  # fmt: skip
def test_topics_of_others_are_refused(topic):
    """A topic that is none of this fleet's nodes' is a peer's error."""
    with pytest.raises(RemoteError, match="unknown_topic"):
        TOPICS.parse_node(topic)
