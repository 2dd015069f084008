"""What is stored of nodes, and read by a later release."""

import json

import pytest
from pydantic import ValidationError
from tests.coordinator.fleets import fleet, inventory

from muster_coordinator.events import SaveNode
from muster_coordinator.records import read_node


def stored() -> dict[str, object]:
    """A node as it is stored."""
    made = fleet()
    (saved,) = (
        it for it in made.handle(inventory("a", rack="r1"), 5.0) if isinstance(it, SaveNode) and it.record.checks
    )
    table: dict[str, object] = json.loads(saved.record.model_dump_json())
    return table


def test_a_record_reads_back() -> None:
    """With all that the node has said itself."""
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
def test_what_a_node_said_and_is_taken_no_longer_keeps_nobody_from_starting(poison: dict[str, object]) -> None:
    """The release before may have stored it; the node is as it was decided, and says again what it is made of."""
    record = read_node(json.dumps(stored() | poison | {"service": "CORDONED"}))
    assert (record.name, record.service, record.checks) == ("a", "CORDONED", ())


@pytest.mark.parametrize("body", ["[]", '{"name": "a"}', "{"])
def test_what_is_no_record_is_an_error(body: str) -> None:
    """Whoever reads it says which row it is."""
    with pytest.raises((ValidationError, ValueError)):
        read_node(body)
