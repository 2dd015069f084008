"""Access lists for brokers: a node publishes and reads only below its own name, and reads what is for all nodes.

At the broker, the user name of a node is its node name; the coordinator is `coordinator`. Each broker has a
syntax of its own; what is allowed is the same in all.
"""

from collections.abc import Sequence

from muster.wire.topics import FROM_NODE, ROOT, TO_NODE, NodeTopic, Topics

COORDINATOR = "coordinator"
"""The account of the coordinator."""

MOSQUITTO = """\
# Least privilege on the broker, for the fleet `{fleet}`. One broker serves one fleet, because it knows a node by its
# name alone.
# The user name of a node is its node name. %u stands for the user name.

# A node may publish only below its own name, and only the messages that nodes send.
{published}

# A node may read what the coordinator sends to it, and what the coordinator sends to all nodes.
{read}

# The coordinator's account. Do not give a node this name.
user {coordinator}
topic readwrite {root}/{fleet}/#
"""

EMQX = """\
%% Least privilege on the broker, for the fleet `{fleet}`: acl.conf of EMQX 5. One broker serves one fleet.
%% The user name of a node is its node name.
{{allow, {{username, "{coordinator}"}}, all, ["{root}/{fleet}/#"]}}.
{{allow, all, publish, [{published}]}}.
{{allow, all, subscribe, [{read}]}}.
{{deny, all}}.
"""


def mosquitto_acl(fleet: str) -> str:
    """The `acl_file` of Mosquitto."""
    published, read = _of_a_node(Topics(fleet), "%u")
    return MOSQUITTO.format(
        fleet=fleet,
        root=ROOT,
        coordinator=COORDINATOR,
        published="\n".join(f"pattern write {topic}" for topic in published),
        read="\n".join(f"pattern read {topic}" for topic in read),
    )


def emqx_acl(fleet: str) -> str:
    """The `acl.conf` of EMQX 5, by its documentation: no EMQX was at hand to try it."""
    published, read = _of_a_node(Topics(fleet), "${username}")
    return EMQX.format(
        fleet=fleet, root=ROOT, coordinator=COORDINATOR, published=_erlang(published), read=_erlang(read)
    )


def _of_a_node(topics: Topics, node: str) -> tuple[list[str], list[str]]:
    """What a node may publish, and what it may read."""
    kinds: tuple[tuple[NodeTopic, ...], ...] = (FROM_NODE, TO_NODE)
    published, own = ([topics.node(node, kind) for kind in each] for each in kinds)
    return published, [*own, topics.coordinator, topics.references]


def _erlang(topics: Sequence[str]) -> str:
    return ", ".join(f'"{topic}"' for topic in topics)
