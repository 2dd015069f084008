"""Converts messages to bytes and back. Bytes from a peer become a message or raise a RemoteError with its kind.

Every message may come compressed (`wire.deflate`). Who sends it must know that its peer takes that.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pydantic_core
from pydantic import BaseModel, TypeAdapter, ValidationError

from muster.errors import RemoteError
from muster.model import format_instant
from muster.wire import messages
from muster.wire.deflate import inflated
from muster.wire.messages import SCHEMA, Message, NodeMessage
from muster.wire.topics import NodeTopic

MAX_MESSAGE_BYTES = 1 << 20
"""Larger payloads are refused unread, compressed or not. A report of 100 runs with full findings is much smaller."""

_REQUIRED = frozenset({"schema_version", "id", "sent_at"})
"""The fields that a sender must write. The models' defaults for `schema` and `id` are for our own messages."""

M = TypeVar("M", bound=Message)

PRESENCE = TypeAdapter[messages.Presence](messages.Presence)
INVENTORY = TypeAdapter[messages.InventoryReport](messages.InventoryReport)
REPORT = TypeAdapter[messages.Report](messages.Report)
GROUP_REPLY = TypeAdapter[messages.AnyGroupReply](messages.AnyGroupReply)
ACK = TypeAdapter[messages.Ack](messages.Ack)
COMMAND = TypeAdapter[messages.AnyCommand](messages.AnyCommand)
COORDINATOR = TypeAdapter[messages.CoordinatorPresence](messages.CoordinatorPresence)
REFERENCES = TypeAdapter[messages.References](messages.References)

_FROM_NODE: dict[NodeTopic, TypeAdapter[Any]] = {
    NodeTopic.PRESENCE: PRESENCE,
    NodeTopic.INVENTORY: INVENTORY,
    NodeTopic.REPORT: REPORT,
    NodeTopic.GROUP: GROUP_REPLY,
}


def encode(message: BaseModel) -> bytes:
    """The message as compact JSON."""
    return message.model_dump_json(by_alias=True).encode()


def encode_short(message: Message) -> bytes:
    """The message as compact JSON without the fields that have their default value."""
    required = {"schema": SCHEMA, "id": message.id}
    rest = message.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"schema_version", "id"})
    return pydantic_core.to_json(required | rest)


def encode_report(
    *,
    sent_at: float,
    node: str,
    stream: str,
    after: int,
    through: int,
    urgent: bool,
    runs: Iterable[str],
    repeats: Sequence[Mapping[str, Any]] = (),
) -> bytes:
    """A `Report` as compact JSON, of runs that are JSON already. It is the same as encoding the report itself.

    Without repeats it has no field for them, and it says that it is urgent only if it is.
    """
    first = {"schema": SCHEMA, "id": messages.short_id(), "sent_at": format_instant(sent_at), "node": node}
    numbers = {"stream": stream, "after": after, "through": through}
    head = pydantic_core.to_json(first | numbers | ({"urgent": True} if urgent else {}))
    also = b',"repeats":%b' % pydantic_core.to_json(repeats) if repeats else b""
    return b'%b,"runs":[%b]%b}' % (head[:-1], ",".join(runs).encode(), also)


def decode(payload: bytes, kind: TypeAdapter[M]) -> M:
    """The message in `payload`. Raises RemoteError of kind oversized, unknown_version or malformed."""
    if len(payload) > MAX_MESSAGE_BYTES:
        raise RemoteError("oversized", f"{len(payload)} bytes, at most {MAX_MESSAGE_BYTES} are accepted")
    payload = inflated(payload, MAX_MESSAGE_BYTES)
    try:
        message = kind.validate_json(payload)
    except ValidationError as error:
        raise _refusal(payload, error) from None
    if not message.model_fields_set >= _REQUIRED:
        raise RemoteError("malformed", "schema and id: must be given")
    return message


def decode_from_node(topic: NodeTopic, node: str, payload: bytes) -> NodeMessage:
    """The message that `node` published on its `topic`. Raises RemoteError of kind wrong_node for another's name."""
    adapter = _FROM_NODE.get(topic)
    if adapter is None:
        raise RemoteError("unknown_topic", f"nodes do not publish on {topic}")
    message: NodeMessage = decode(payload, adapter)
    if message.node != node:
        raise RemoteError("wrong_node", f"{message.node!r} published as {node!r}")
    return message


def _refusal(payload: bytes, error: ValidationError) -> RemoteError:
    try:
        value = pydantic_core.from_json(payload)
    except ValueError:
        return RemoteError("malformed", "not JSON")
    version = value.get("schema") if isinstance(value, dict) else None
    if isinstance(version, int) and version != SCHEMA:
        return RemoteError("unknown_version", f"schema {version}, this is {SCHEMA}")
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return RemoteError("malformed", f"{where}: {first['msg']}")
