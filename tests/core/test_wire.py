"""Topics and codec: whatever a peer sends becomes a message or a RemoteError that says its kind."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.cases import cases
from tests.lots import examples

from muster.check import CheckInfo, Needs, Scope
from muster.errors import RemoteError
from muster.model import Device, Finding, Inventory, RankResult, Run, Severity, Topology, Verdict
from muster.references import Reference
from muster.wire import codec
from muster.wire.messages import (
    Abort,
    Accepted,
    Ack,
    CoordinatorPresence,
    Declined,
    Finished,
    InventoryReport,
    Join,
    Message,
    PluginInfo,
    Prepare,
    Presence,
    Progress,
    Ready,
    References,
    Report,
    RunCheck,
    Start,
)
from muster.wire.report_head import report_head
from muster.wire.topics import TO_NODE, NodeTopic

names = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,20}\Z")
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# Milliseconds are what the wire keeps of an instant.
instants = st.integers(0, 4_000_000_000_000).map(lambda milliseconds: milliseconds / 1000)
hosts = names | st.ip_addresses().map(str)
counts = st.integers(0, 1000)
few = st.integers(1, 127)
numbers = st.floats(allow_nan=False, allow_infinity=False)
plain = st.booleans() | st.integers(-(1 << 60), 1 << 60) | numbers | texts
values = st.recursive(
    st.none() | plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
tables = st.dictionaries(texts, values, max_size=3)
conditions = st.dictionaries(
    texts,
    plain | st.lists(plain, min_size=1, max_size=3) | st.fixed_dictionaries({"at_least": st.integers(0, 9)}),
    max_size=3,
)
metrics = st.dictionaries(names, st.none() | numbers | st.lists(st.none() | numbers, max_size=3), max_size=3)
findings = st.builds(Finding, code=names, summary=texts, severity=st.sampled_from(Severity), evidence=tables)
ranks = st.builds(
    RankResult,
    rank=counts,
    verdict=st.sampled_from(Verdict),
    findings=st.lists(findings, max_size=2).map(tuple),
    metrics=metrics,
    facts=tables,
    duration_s=st.floats(0, 1e6),
)
devices = st.builds(Device, index=few, uuid=texts, model=texts, pci_address=st.none() | texts)
inventories = st.builds(
    Inventory,
    devices=st.lists(devices, max_size=2).map(tuple),
    topology=st.builds(Topology, rack=st.none() | texts),
    software=st.dictionaries(texts, texts, max_size=2),
)
checks = st.builds(
    CheckInfo,
    name=names,
    summary=texts,
    scope=st.sampled_from(Scope),
    needs=st.sampled_from(Needs),
    cadence_s=st.none() | st.floats(1, 1e6),
    timeout_s=st.floats(1, 1e6),
    objective=st.none() | names,
    params=tables,
)
plugins = st.builds(PluginInfo, name=names, distribution=st.none() | texts, version=st.none() | texts)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """A report whose runs are its node's own and in order."""
    node = draw(names)
    after, *sequence = sorted(draw(st.sets(counts, min_size=2, max_size=4)))
    runs = [
        Run(
            id=draw(names),
            node=node,
            check=draw(names),
            verdict=draw(st.sampled_from(Verdict)),
            findings=tuple(draw(st.lists(findings, max_size=2))),
            metrics=draw(metrics),
            started_at=draw(instants),
            duration_s=draw(st.floats(0, 1e6)),
            seq=seq,
        )
        for seq in sequence
    ]
    return Report(sent_at=draw(instants), node=node, stream=draw(names), after=after, runs=tuple(runs))


sent = {"id": names, "sent_at": instants}
from_node = {**sent, "node": names}
reply = {**from_node, "group": names}
command = {**sent, "epoch": counts, "expires_at": instants, "cause": st.none() | texts}

MESSAGES: dict[type[Message], tuple[TypeAdapter, st.SearchStrategy]] = {
    Presence: (codec.PRESENCE, st.builds(Presence, **from_node, online=st.booleans(), outbox=counts)),
    InventoryReport: (
        codec.INVENTORY,
        st.builds(
            InventoryReport,
            **from_node,
            inventory=inventories,
            checks=st.lists(checks, max_size=2).map(tuple),
            plugins=st.lists(plugins, max_size=2).map(tuple),
        ),
    ),
    Report: (codec.REPORT, reports()),
    Accepted: (codec.GROUP_REPLY, st.builds(Accepted, **reply, address=hosts, port=few, ranks=few)),
    Declined: (codec.GROUP_REPLY, st.builds(Declined, **reply, reason=names, detail=texts)),
    Ready: (codec.GROUP_REPLY, st.builds(Ready, **reply)),
    Progress: (codec.GROUP_REPLY, st.builds(Progress, **reply, text=texts)),
    Finished: (codec.GROUP_REPLY, st.builds(Finished, **reply, ranks=st.lists(ranks, max_size=2).map(tuple))),
    Ack: (codec.ACK, st.builds(Ack, **sent, stream=names, stored_through=counts, gap=st.booleans())),
    RunCheck: (codec.COMMAND, st.builds(RunCheck, **command, run=names, check=names, params=tables)),
    Join: (
        codec.COMMAND,
        st.builds(Join, **command, group=names, check=names, params=tables, timeout_s=st.floats(0, 1e6)),
    ),
    Prepare: (
        codec.COMMAND,
        st.builds(
            Prepare, **command, group=names, first_rank=counts, world_size=few, master_addr=hosts, master_port=few
        ),
    ),
    Start: (codec.COMMAND, st.builds(Start, **command, group=names)),
    Abort: (codec.COMMAND, st.builds(Abort, **command, group=names, reason=texts)),
    CoordinatorPresence: (
        codec.COORDINATOR,
        st.builds(CoordinatorPresence, **sent, online=st.booleans(), epoch=counts, url=texts),
    ),
    References: (
        codec.REFERENCES,
        st.builds(
            References,
            **sent,
            rows=st.lists(
                st.builds(Reference, check=names, metric=names, when=conditions, fail_below=numbers, source=names),
                max_size=2,
            ).map(tuple),
        ),
    ),
}

ADAPTERS = {id(adapter): adapter for adapter, _ in MESSAGES.values()}.values()


def leaves(kind: type[Message]) -> set[type[Message]]:
    return {kind} if not kind.__subclasses__() else {leaf for each in kind.__subclasses__() for leaf in leaves(each)}


def test_every_message_is_tested_here():
    """A new message needs a round trip of its own."""
    assert set(MESSAGES) == leaves(Message)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_round_trip(kind, data):
    """Every message reads back as what was sent, and says its schema version."""
    adapter, strategy = MESSAGES[kind]
    message = data.draw(strategy)
    payload = codec.encode(message)
    assert json.loads(payload)["schema"] == 1
    assert codec.decode(payload, adapter) == message


@given(st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()))
def test_bytes_from_anybody_raise_nothing_but_a_remote_error(payload):
    """Garbage on any topic is a RemoteError."""
    for adapter in ADAPTERS:
        with pytest.raises(RemoteError):
            codec.decode(payload, adapter)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_messages_that_were_damaged_raise_nothing_but_a_remote_error(data):
    """A message with any field replaced is either still one or a RemoteError, and can then be written again."""
    adapter, strategy = data.draw(st.sampled_from(list(MESSAGES.values())))
    table = json.loads(codec.encode(data.draw(strategy)))
    table[data.draw(st.sampled_from(sorted(table)))] = data.draw(values)
    try:
        message = codec.decode(json.dumps(table).encode(), adapter)
    except RemoteError:
        return
    codec.encode(message)


def presence_table() -> dict[str, object]:
    return {"schema": 1, "id": "m1", "sent_at": "2026-01-31T12:00:00Z", "node": "n1"}


def presence(**changes: object) -> bytes:
    table = {**presence_table(), "online": True, **changes}
    return json.dumps({key: value for key, value in table.items() if value is not None}).encode()


@cases(
    ("payload", "kind", "detail"),
    [
        (b"", "malformed", "not JSON"),
        (b"\xff\xfe", "malformed", "not JSON"),
        (b"[" * 100_000, "malformed", "not JSON"),
        (b"[]", "malformed", ""),
        (presence(online=None), "malformed", "online: Field required"),
        (presence(schema=None), "malformed", "schema and id: must be given"),
        (presence(id=None), "malformed", "schema and id: must be given"),
        (presence(sent_at="noon"), "malformed", "sent_at: "),
        (presence(sent_at=1e300), "malformed", "sent_at: "),
        (presence(schema=2), "unknown_version", "schema 2, this is 1"),
        (presence(schema=2, online="maybe"), "unknown_version", "schema 2, this is 1"),
        (presence(schema="one"), "malformed", "schema: "),
        (presence(version="x" * codec.MAX_MESSAGE_BYTES), "oversized", "at most 1048576 are accepted"),
        (presence(node="n2"), "wrong_node", "'n2' published as 'n1'"),
        (presence(node="n/1"), "malformed", "node: "),
    ],
)
def test_what_is_refused_says_its_kind(payload, kind, detail):
    """Refusals are counted by kind, so each has exactly one."""
    with pytest.raises(RemoteError) as caught:
        codec.decode_from_node(NodeTopic.PRESENCE, "n1", payload)
    assert caught.value.kind == kind
    assert detail in caught.value.detail


CHECK = {
    "name": "c", "summary": "", "scope": "NODE", "needs": "NOTHING", "cadence_s": 1, "timeout_s": 1, "objective": None,
    "params": {},
}  # fmt: skip


REPEAT = {"seq": 2, "like": 1, "age_ms": 0, "duration_s": 0.1}


@cases(
    ("topic", "fields"),
    [
        (NodeTopic.PRESENCE, {"online": True, "outbox": -1}),
        (NodeTopic.PRESENCE, {"online": True, "dropped": {"odd name": 1}}),
        (NodeTopic.PRESENCE, {"online": True, "dropped": {f"c{n}": 1 for n in range(300)}}),
        *(
            (NodeTopic.INVENTORY, {"inventory": {}, "checks": [{**CHECK, **change}]})
            for change in (
                {"name": "odd name"}, {"timeout_s": 1e300}, {"cadence_s": 1e9}, {"cadence_s": -1}, {"cost_s": 1e300},
                {"objective": "a\nb"},
                {"compared": {f"m{n}": "LOWER" for n in range(300)}},
            )
        ),
        (NodeTopic.INVENTORY, {"inventory": {}, "checks": [CHECK] * 300}),
        (NodeTopic.INVENTORY, {"inventory": {"devices": [{"index": -1, "uuid": "", "model": ""}]}, "checks": []}),
        *(
            (NodeTopic.REPORT, {"stream": "s", "after": 0, "repeats": [{**REPEAT, "facts": [number]}]})
            for number in (10**400, -(10**19), 1 << 64)
        ),
        (NodeTopic.GROUP, {"kind": "accepted", "group": "g", "address": "h", "port": 1, "ranks": 2147483000}),
        (NodeTopic.GROUP, {"kind": "accepted", "group": "g", "address": "h", "port": 0, "ranks": 1}),
        (NodeTopic.GROUP, {"kind": "accepted", "group": "g", "address": "http://h/", "port": 1, "ranks": 1}),
        (NodeTopic.GROUP, {"kind": "accepted", "group": "g", "address": "-oProxy", "port": 1, "ranks": 1}),
        (NodeTopic.GROUP, {"kind": "finished", "group": "g", "ranks": [
            {"rank": -1, "verdict": "PASS", "duration_s": 1}]}),
    ],
)  # fmt: skip
def test_impossible_values_are_refused(topic, fields):
    """Numbers, names and sizes that would cause errors later are malformed when they arrive."""
    message = {**presence_table(), **fields}
    with pytest.raises(RemoteError, match="malformed"):
        codec.decode_from_node(topic, "n1", json.dumps(message).encode())


def test_texts_are_made_printable():
    """Control characters are replaced, and long texts are shortened; nothing else changes."""
    declined = {**presence_table(), "kind": "declined", "group": "g", "reason": "busy"}
    for text, kept in {
        "all well\n\tGPU 3 — ☂": "all well\n\tGPU 3 — ☂",
        "\x1b[2Jgone\x00\u202e": "\ufffd[2Jgone\ufffd\ufffd",
        "n1\u3164\xad\u061c\U000e0041": "n1\ufffd\ufffd\ufffd\ufffd",  # all are invisible
        "x" * 5000: "x" * 4095 + "…",
    }.items():
        message = codec.decode_from_node(NodeTopic.GROUP, "n1", json.dumps({**declined, "detail": text}).encode())
        assert isinstance(message, Declined)
        assert message.detail == kept


def test_a_label_has_one_line():
    """A node's rack or GPU model looks like no line of ours, wherever it is shown."""
    presence = {**presence_table(), "online": True, "version": "0.2\n\nn2: FAILED\t"}
    message = codec.decode_from_node(NodeTopic.PRESENCE, "n1", json.dumps(presence).encode())
    assert isinstance(message, Presence)
    assert message.version == "0.2 n2: FAILED "


def test_numbers_that_json_lacks_become_null():
    """Also deep in facts, so that every JSON parser can read what is stored."""
    run = {"id": "r", "node": "n1", "check": "c", "verdict": "PASS", "started_at": 0, "duration_s": 1, "seq": 1}
    facts = {"a": [1.5, {"b": float("nan")}], "c": float("inf")}
    report = {**presence_table(), "stream": "s", "after": 0, "runs": [{**run, "facts": facts, "metrics": {"m": 1e308}}]}
    message = codec.decode_from_node(NodeTopic.REPORT, "n1", json.dumps(report).encode())
    assert isinstance(message, Report)
    assert message.runs[0].facts == {"a": [1.5, {"b": None}], "c": None}
    assert message.runs[0].metrics == {"m": None}


def test_unknown_fields_are_ignored():
    """A newer peer may say more."""
    message = codec.decode_from_node(NodeTopic.PRESENCE, "n1", presence(colour="blue"))
    assert isinstance(message, Presence)


@pytest.mark.parametrize("topic", TO_NODE)
def test_nodes_do_not_publish_what_the_coordinator_says(topic):
    """A message on a topic of the coordinator's is refused whatever it holds."""
    with pytest.raises(RemoteError, match="unknown_topic"):
        codec.decode_from_node(topic, "n1", presence())


@cases(
    ("after", "sequence", "node", "error"),
    [
        (0, [2, 1], "n1", "must rise"),
        (0, [1, 1], "n1", "must rise"),
        (3, [3], "n1", "must rise"),
        (0, [0], "n1", "must rise"),
        (0, [1], "n2", "its own node's runs only"),
        (0, [], "n1", "1 to 200 runs"),
        (0, [1 << 60], "n1", "less than"),
    ],
)
def test_reports_that_contradict_themselves_are_refused(after, sequence, node, error):
    """Sequence numbers rise and every run is the sender's own, or nothing of the report counts."""
    run = {"id": "r", "node": node, "check": "c", "verdict": "PASS", "started_at": 0, "duration_s": 1}
    report = {"stream": "s", "after": after, "runs": [{**run, "seq": seq} for seq in sequence]}
    with pytest.raises(RemoteError, match=error):
        codec.decode_from_node(NodeTopic.REPORT, "n1", presence(**report))


@settings(max_examples=examples(40))
@given(reports())
def test_a_report_of_runs_that_are_json_already_is_the_same(report):
    """An agent does not read what it has written into its outbox."""
    runs = [f'{{"seq":{run.seq},{run.model_dump_json(exclude={"seq"})[1:]}' for run in report.runs]
    payload = codec.encode_report(
        sent_at=report.sent_at,
        node=report.node,
        stream=report.stream,
        after=report.after,
        through=report.runs[-1].seq,
        urgent=report.urgent,
        runs=runs,
    )
    through = report.runs[-1].seq
    decoded = codec.decode(payload, codec.REPORT)
    assert decoded == report.model_copy(update={"id": decoded.id, "through": through})
    assert report_head(payload) == (report.stream, report.after, through, report.urgent)
