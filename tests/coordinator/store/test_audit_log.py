"""The audit log in the database: added to, read, and never changed."""

import pytest
from sqlalchemy import delete, text, update
from sqlalchemy.exc import DBAPIError
from tests.coordinator.store.stored_records import START, make_node

from muster.config import Settings, StoreSettings
from muster.errors import Refused
from muster_coordinator.model.audit import AppendAudit, AuditEntry, Credential
from muster_coordinator.model.events import SaveNode
from muster_coordinator.store.audit_log import read_audit
from muster_coordinator.store.store import Store
from muster_coordinator.store.tables import AUDIT


def entry(number, subject="n1"):
    return AuditEntry(
        id=f"e{number}",
        at=START + number,
        action="hold_node",
        subject=subject,
        by="ann",
        credential=Credential.TOKEN,
        address="192.0.2.1",
        reason="a fan",
        details={"untested": True},
    )


ENTRIES = [entry(1), entry(2, "n2"), entry(3), entry(4, None)]


@pytest.fixture(params=["sqlite", "postgresql"])
async def store(request, tmp_path):
    """A store of each kind with four entries."""
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    url = None if server is None else server.new_database()
    store = await Store.open(Settings(data_dir=tmp_path, store=StoreSettings(url=url)))
    await store.write([AppendAudit(entry) for entry in ENTRIES])
    yield store
    await store.close()


async def test_entries_come_back_the_latest_first(store):
    """All, or those about one subject, in pages."""
    database = store.database
    assert (await read_audit(database, None, 9, None)).items == tuple(reversed(ENTRIES))
    assert (await read_audit(database, "n2", 9, None)).items == (ENTRIES[1],)
    assert (await read_audit(database, "n9", 9, None)).items == ()
    first = await read_audit(database, None, 3, None)
    assert (await read_audit(database, None, 3, first.next_cursor)).items == (ENTRIES[0],)
    with pytest.raises(Refused, match="cursor"):
        await read_audit(database, None, 3, "nonsense")


@pytest.mark.parametrize("change", [update(AUDIT).values(body="{}"), delete(AUDIT), text("DELETE FROM audit")])
async def test_the_database_refuses_to_change_an_entry(store, change):
    """Also for somebody with the coordinator's own account."""
    with pytest.raises(DBAPIError, match="append-only"):
        async with store.database.engine.begin() as connection:
            await connection.execute(change)
    assert len((await read_audit(store.database, None, 9, None)).items) == len(ENTRIES)


async def test_an_entry_is_stored_with_what_it_is_about(store):
    """If one of them cannot be stored, the other is not."""
    broken = make_node("n1", START).model_copy(update={"name": None})
    with pytest.raises(Exception, match=r"(?i)null"):
        await store.write([AppendAudit(entry(5)), SaveNode(broken)])
    assert len((await read_audit(store.database, None, 9, None)).items) == len(ENTRIES)
