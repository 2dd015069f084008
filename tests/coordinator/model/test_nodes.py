"""Stored records of nodes, and what a later release reads."""

import json

import pytest
from pydantic import ValidationError
from tests.coordinator.fleets import fleet, inventory

from muster_coordinator.model.events import SaveNode
from muster_coordinator.model.nodes import Announced, read_announced, read_node


def stored() -> dict[str, object]:
    """A node as it is stored."""
    made = fleet()
    (saved,) = (
        command
        for command in made.handle(inventory("a", rack="r1"), 5.0)
        if isinstance(command, SaveNode) and command.record.checks
    )
    table: dict[str, object] = json.loads(saved.record.model_dump_json())
    return table


def test_a_record_reads_back() -> None:
    """With everything that the node announced."""
    record = read_node(json.dumps(stored()))
    assert (record.name, record.inventory.topology.rack, len(record.checks)) == ("a", "r1", 2)


@pytest.mark.parametrize(
    "poison",
    [
        {"checks": [{"name": "odd name/#"}]},
        {"inventory": {"devices": [{"index": -1}]}},
        {"plugins": [{"name": 1}]},
    ],
)
def test_announcements_that_are_no_longer_valid_are_dropped(poison: dict[str, object]) -> None:
    """An earlier release may have stored them. The decisions stay, and the node announces itself again."""
    record = read_node(json.dumps(stored() | poison | {"service": "CORDONED"}))
    assert (record.name, record.service, record.checks) == ("a", "CORDONED", ())


@pytest.mark.parametrize("text", ["{", "[]", '{"checks": [{"name": "odd name/#"}]}'])
def test_announcements_that_cannot_be_read_are_dropped(text: str) -> None:
    """The node announces itself again."""
    assert read_announced(text) == Announced()


@pytest.mark.parametrize("body", ["[]", '{"name": "a"}', "{"])
def test_anything_else_is_an_error(body: str) -> None:
    """The caller adds which row it is."""
    with pytest.raises((ValidationError, ValueError)):
        read_node(body)
