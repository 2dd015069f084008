"""A coordinator that starts gets the inventory of each node from the broker, and knows which of them it has."""

from dataclasses import replace

from sqlalchemy import update
from tests.coordinator.restart.lives import inventory, presence

from muster_coordinator.model.events import SaveNode
from muster_coordinator.store.tables import ANNOUNCEMENTS


def taken(digest):
    return replace(inventory("n1"), digest=digest)


async def test_an_inventory_is_known_after_a_restart(lives):
    """Only the one that was taken last, and only that of its node."""
    await lives.begin()
    await lives.feed(presence("n1"), presence("n2"), taken("one"))
    await lives.begin()
    asked = [("n1", "one"), ("n1", "other"), ("n2", "one"), ("unheard", "one")]
    assert [lives.fleet.inventories.is_known(*each) for each in asked] == [True, False, False, False]


async def test_the_same_inventory_in_another_message_is_stored_once(lives):
    """An agent that was restarted sends other bytes, and says the same."""
    await lives.begin()
    await lives.feed(presence("n1"), taken("one"))
    again = [await lives.feed(taken("two")) for _ in range(2)]
    assert [[type(command) for command in commands] for commands in again] == [[SaveNode], []]
    await lives.begin()
    assert lives.fleet.inventories.is_known("n1", "two")


async def test_checks_that_can_no_longer_be_read_are_taken_again(lives):
    """A later release may refuse what an earlier one has stored."""
    await lives.begin()
    await lives.feed(presence("n1"), taken("one"))
    async with lives.store.database.writing() as connection:
        await connection.execute(update(ANNOUNCEMENTS).values(body="{}broken"))
    await lives.begin()
    assert not lives.fleet.inventories.is_known("n1", "one")
