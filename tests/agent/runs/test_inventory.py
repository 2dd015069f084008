"""What a node says it is made of: what was found, its labels and what the operator set."""

import json
import re

import pytest
from tests.cases import cases

from muster.agent_settings import AgentSettings
from muster.config import Settings
from muster.errors import SettingsError
from muster.labels import MOST_LABELS, valid_labels
from muster.model import Inventory, MachineType, MachineTypeSource, Topology
from muster.topology_labels import TopologyLabels
from muster_agent.runs.inventory import completed
from muster_agent.runs.labels import MOST_BYTES, parse_labels, read_labels


def test_the_operator_goes_before_labels_and_labels_before_what_was_found():
    """Level by level: what one does not say, the next one may."""
    found = Inventory(topology=Topology(block="found", rack="found", leaf="found"))
    labels = {"muster/block": "labelled", "muster/rack": "labelled"}
    inventory = completed(found, Settings(agent=AgentSettings(block="set")), labels)
    assert inventory.topology == Topology(block="set", rack="labelled", leaf="found")
    assert inventory.labels == labels


def test_labels_that_a_plugin_found_count_where_the_file_has_none():
    """They place the node as those of a file do, which have precedence."""
    found = Inventory(labels={"example.com/row": "7"})
    inventory = completed(found, Settings(topology_labels=TopologyLabels(rack="example.com/row")), {})
    assert (inventory.labels, inventory.topology.rack) == (found.labels, "7")
    assert completed(found, Settings(), {"a": "b"}).labels == {"a": "b", "example.com/row": "7"}
    assert completed(found, Settings(), {"example.com/row": "8"}).labels == {"example.com/row": "8"}


LABEL = "node.kubernetes.io/instance-type"
CLOUD = MachineType(name="a3-ultragpu-8g", source=MachineTypeSource.CLOUD, said_by="Google Cloud")


@cases(
    ("said", "labels", "found", "name", "sources"),
    [
        ("ours", {LABEL: "a4-highgpu-8g"}, (CLOUD,), "ours", ["setting", "label", "cloud"]),
        (None, {LABEL: "a4-highgpu-8g"}, (CLOUD,), "a4-highgpu-8g", ["label", "cloud"]),
        (None, {}, (CLOUD,), "a3-ultragpu-8g", ["cloud"]),
        (None, {}, (), None, []),
        ("", {}, (CLOUD,), "a3-ultragpu-8g", ["cloud"]),
    ],
)
def test_the_machine_type_says_where_it_is_from(said, labels, found, name, sources):
    """The operator goes before labels, and labels before what plugins found; what they say stays, too."""
    settings = Settings(agent=AgentSettings(machine_type=said))
    inventory = completed(Inventory(machine_types=found), settings, labels)
    assert (inventory.machine_type, [each.source for each in inventory.machine_types]) == (name, sources)


def test_a_machine_type_stays_known_while_its_source_is_silent():
    """A machine does not change its type; what a source says now replaces what it said before."""
    before = completed(Inventory(machine_types=(CLOUD,)), Settings(), {}).machine_types
    assert completed(Inventory(), Settings(), {}, before).machine_type == "a3-ultragpu-8g"
    now = CLOUD.model_copy(update={"name": "a4-highgpu-8g"})
    assert completed(Inventory(machine_types=(now,)), Settings(), {}, before).machine_types == (now,)


def test_the_machine_is_described_beside_it():
    """What the plugins found of its software stays."""
    inventory = completed(Inventory(machine_type="found", software={"driver": "575"}), Settings(), {})
    assert inventory.machine_type == "found"
    assert inventory.software.keys() == {"driver", "muster", "python", "kernel"}


@pytest.mark.parametrize(
    "text",
    [
        'a.io/b="c"\nd="e-1"',
        '\n  a.io/b="c"\n\nd="e\\u002d1"\n',
        '{"a.io/b": "c", "d": "e-1"}',
        json.dumps(
            {"kind": "Node", "metadata": {"name": "n", "labels": {"a.io/b": "c", "d": "e-1"}}, "status": {"x": 1}}
        ),
    ],
    ids=["downward API", "with spaces and escapes", "an object", "a node"],
)
def test_a_file_of_labels_is_read(text, tmp_path):
    """In the forms in which it is easy to get."""
    (tmp_path / "labels").write_text(text)
    assert read_labels(tmp_path / "labels") == {"a.io/b": "c", "d": "e-1"}


def test_without_a_file_or_without_content_there_are_no_labels(tmp_path):
    """A pod without labels has an empty file."""
    (tmp_path / "labels").touch()
    assert read_labels(tmp_path / "labels") == read_labels(None) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('a="b"\nc=d', "line 2: 'c=d' is not key=\"value\""),
        ('a="b', 'line 1: \'a="b\' is not key="value"'),
        ("a: b", "line 1: 'a: b' is not key=\"value\""),
        ('a="\\x"', "line 1: the value of 'a': invalid escape at line 1 column 3"),
        ('a b="c"', "line 1: "),
        ('a/b/c="d"', "'a/b/c' is not the key of a label, for example topology.kubernetes.io/rack"),
        ('a="b c"', "label 'a' has the value 'b c'; use up to 63 letters"),
        (f'a="{"b" * 64}"', "up to 63 letters"),
        ('{"a": "b"', "not JSON: "),
        ("[" * 100_000, "line 1: "),
        ('{"a":' * 100_000, "not JSON: recursion limit exceeded"),
        ('{"a": 1}', "the value of 'a' is not a string, for example"),
        ('{"kind": "List", "items": [], "metadata": {}}', "has no metadata.labels: print one node with `kubectl"),
        ('{"metadata": 3}', "has no metadata.labels"),
        (
            json.dumps({f"k{number}": "v" for number in range(MOST_LABELS + 1)}),
            "holds 513 labels, at most 512 are valid",
        ),
    ],
)
def test_wrong_content_is_refused(text, reason):
    """With the line or key, and what would be right."""
    with pytest.raises(ValueError, match=re.escape(reason)) as refused:
        parse_labels(text)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "cannot read "), (b"\xff", "can't decode"), (b" " * (MOST_BYTES + 1), "has more than 1048576 bytes")],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path, content, reason):
    """With the setting and the path."""
    path = tmp_path / "labels"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=reason) as refused:
        read_labels(path)
    assert str(refused.value).startswith("agent.labels_file: ")
    assert str(path) in str(refused.value)


def test_an_inventory_takes_what_kubernetes_takes():
    """As many as fit into a message, and no longer ones."""
    labels = {f"{'p' * 253}/{'k' * 58}{number:05}": "v" * 63 for number in range(MOST_LABELS)}
    assert Inventory(labels=labels).labels == labels
    assert len(Inventory(labels=labels).model_dump_json()) < 1 << 18
    with pytest.raises(ValueError, match="at most 512"):
        valid_labels({**labels, "one": "more"})
    with pytest.raises(ValueError, match="not the key of a label"):
        Inventory(labels={"k" * 64: "v"})
