"""Access lists for brokers: a node publishes and reads only below its own name, and reads what is for all nodes.

At the broker, the user name of a node is its node name; the coordinator is `coordinator`. Each broker has a
syntax of its own; what is allowed is the same in all.
"""

import json
import re
from collections.abc import Sequence

from muster.errors import SettingsError
from muster.wire.topics import FROM_NODE, ROOT, TO_NODE, NodeTopic, Topics, client_id

COORDINATOR = "coordinator"
"""The account of the coordinator."""

VHOST, EXCHANGE = "/", "amq.topic"
"""Where RabbitMQ puts MQTT, unless its settings say otherwise."""

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


def rabbitmq_definitions(fleet: str, nodes: Sequence[str]) -> str:
    """The rights of the coordinator and of these nodes, as JSON for `rabbitmqctl import_definitions`.

    RabbitMQ matches regular expressions. It can put a user name into one, but not escape it there, so each node has
    rows of its own. With MQTT, a client reads from a queue that has its client id.

    Raises SettingsError for a name with a dot: RabbitMQ delivers a message on `…/n.1/report` as `…/n/1/report`.
    """
    for name in (fleet, *nodes):
        if "." in name:
            raise SettingsError(
                f"{name!r}: RabbitMQ takes a dot for a slash; set `node` and `fleet` to names without dots"
            )
    topics = Topics(fleet)
    queues = f"^({EXCHANGE.replace('.', '[.]')}|mqtt-subscription-.*)$"
    rights = [_rights(COORDINATOR, queues)]
    topic_rights = [_topic_rights(COORDINATOR, *[f"^{_pattern(f'{ROOT}/{fleet}')}[.].*$"] * 2)]
    for node in nodes:
        own = re.escape(f"mqtt-subscription-{client_id(fleet, node)}")
        rights.append(_rights(node, f"^({EXCHANGE.replace('.', '[.]')}|{own}qos[01])$"))
        topic_rights.append(_topic_rights(node, *map(_any_of, _of_a_node(topics, node))))
    return json.dumps({"permissions": rights, "topic_permissions": topic_rights}, indent=2)


def _rights(user: str, pattern: str) -> dict[str, str]:
    return {"user": user, "vhost": VHOST, "configure": pattern, "write": pattern, "read": pattern}


def _topic_rights(user: str, write: str, read: str) -> dict[str, str]:
    return {"user": user, "vhost": VHOST, "exchange": EXCHANGE, "write": write, "read": read}


def _any_of(topics: Sequence[str]) -> str:
    return f"^({'|'.join(map(_pattern, topics))})$"


def _pattern(topic: str) -> str:
    """The regular expression of one topic, which AMQP divides by dots."""
    return re.escape(topic.replace("/", "."))


def _of_a_node(topics: Topics, node: str) -> tuple[list[str], list[str]]:
    """What a node may publish, and what it may read."""
    kinds: tuple[tuple[NodeTopic, ...], ...] = (FROM_NODE, TO_NODE)
    published, own = ([topics.node(node, kind) for kind in each] for each in kinds)
    return published, [*own, topics.coordinator, topics.references]


def _erlang(topics: Sequence[str]) -> str:
    return ", ".join(f'"{topic}"' for topic in topics)
