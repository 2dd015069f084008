"""Cases that the last release stored are served as before: schema 0005 kept them flat, 0006 keeps three records.

`databases/0005.sql.gz` is a database that the last release wrote, `0005.cases.json.gz` what its API served from it.
"""

import gzip
import json
import sqlite3
from pathlib import Path

import pytest
from tests.coordinator.store.revisions import downgrade

from muster.config import Settings
from muster.model import ServiceState
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model.policy_row import Row
from muster_coordinator.model.quarantine_events import Restored
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.reconciler import Reconciler
from muster_coordinator.store.store import Store

DATABASES = Path(__file__).parent / "databases"
LAST = json.loads(gzip.decompress((DATABASES / "0005.cases.json.gz").read_bytes()))

TEXT_OF_NOW = "held_because"
"""Why a node waits is told with the numbers of now; the last release kept the text of when it began to wait."""

REWORDED = (TEXT_OF_NOW, "needs_person", "spared")
"""Sentences that each release makes for itself from the fields of the case."""


@pytest.fixture
def settings(tmp_path):
    """The settings of a coordinator whose database the last release wrote."""
    write(tmp_path / "muster.db").close()
    return Settings(data_dir=tmp_path)


def write(path):
    """Writes the database of the last release, and gives it back open."""
    database = sqlite3.connect(path)
    database.executescript(gzip.decompress((DATABASES / "0005.sql.gz").read_bytes()).decode())
    return database


async def saved_in(settings):
    """What this release starts from."""
    store = await Store.open(settings)
    saved = await store.saved()
    await store.close()
    return saved


async def served(settings, mode):
    """The cases that this release serves in a mode, as JSON by node."""
    saved = await saved_in(settings)
    rules = QuarantineSettings.model_validate({**LAST["settings"], "mode": mode})
    reconciler = Reconciler(rules, Policy(tuple(Row.model_validate(row) for row in LAST["policy"])), 99)
    restored = Restored(records=saved.quarantine, transitions=saved.transitions, fleet=saved.fleet_state)
    reconciler.handle(restored, LAST["now"])
    return {node: json.loads(reconciler.case_view(node).model_dump_json()) for node in reconciler.records}


@pytest.mark.parametrize("mode", ["observe", "dry-run", "enforce"])
async def test_cases_are_served_as_the_last_release_served_them(settings, mode):
    """All that the last release said about a node; a sentence may have other words."""
    now = await served(settings, mode)
    expected = LAST["served"][mode]
    assert now.keys() == expected.keys()
    for node, case in expected.items():
        assert reworded(known_to(now[node], case)) == reworded(case), node


def reworded(case):
    """A case with whether there is a sentence, in place of its words."""
    return {**case, **{name: bool(case[name]) for name in REWORDED}}


def known_to(now, last):
    """What is served now, without the fields that the last release did not have."""
    if isinstance(now, dict) and isinstance(last, dict):
        return {key: known_to(value, last[key]) for key, value in now.items() if key in last}
    if isinstance(now, list) and isinstance(last, list) and len(now) == len(last):
        return [known_to(each, was) for each, was in zip(now, last, strict=True)]
    return now


def test_the_database_shows_what_may_be_stored():
    """Every service state, and every field of a case with something in it, so that the test above compares it."""
    cases = LAST["served"]["enforce"].values()
    assert {case["state"] for case in cases} == set(ServiceState)
    empty = {key for key in LAST["schema"]["properties"] if not any(case.get(key) for case in cases)}
    assert empty <= {"dry_run"}
    assert any(case["dry_run"] for case in LAST["served"]["dry-run"].values())
    assert "FAILED" in {outcome["effect"] for case in cases for outcome in case["outcomes"].values()}


@pytest.mark.parametrize("mode", ["observe", "dry-run", "enforce"])
async def test_nodes_wait_for_what_they_waited_for(settings, mode):
    """A node that waited to be cordoned still waits."""
    now = await served(settings, mode)
    waiting = {node for node, case in LAST["served"][mode].items() if case[TEXT_OF_NOW]}
    assert {node for node, case in now.items() if case[TEXT_OF_NOW]} == waiting


async def test_the_last_release_can_have_its_database_back(settings):
    """Down to 0005 every case is as it was stored, but for why it waits; up again everything is as it was migrated."""
    stored = bodies(write(":memory:"))
    store = await Store.open(settings)
    before = await store.saved()
    async with store.database.engine.begin() as connection:
        await connection.run_sync(downgrade, "0005")
    await store.close()
    again = bodies(sqlite3.connect(settings.data_dir / "muster.db"))
    assert {node: without(case, TEXT_OF_NOW) for node, case in again.items()} == {
        node: without(case, TEXT_OF_NOW) for node, case in stored.items()
    }
    after = await saved_in(settings)
    assert (after.transitions, after.fleet_state) == (before.transitions, before.fleet_state)
    assert [without_wait(record) for record in after.quarantine] == [without_wait(it) for it in before.quarantine]


def bodies(database):
    """The stored cases of a database of the last release, by node; its log is there too."""
    rows = database.execute("SELECT node, body FROM cases").fetchall()
    database.execute("SELECT number FROM quarantine_log")
    database.close()
    return {node: json.loads(body) for node, body in rows}


def test_served_cases_have_the_fields_of_the_last_release():
    """The same names with the same types, also within; a field may be new, and none is gone."""
    now, last = CaseView.model_json_schema(mode="serialization"), LAST["schema"]
    assert list(differences(inlined(now, now["$defs"]), inlined(last, last["$defs"]), "case")) == []


def differences(now, last, where):
    """What a schema no longer says as the last release said it."""
    if isinstance(last, dict) and isinstance(now, dict):
        for name in last:
            if name not in now:
                yield f"{where}: {name} is gone"
            elif name != "required":  # a field that is new is served always
                yield from differences(now[name], last[name], f"{where}.{name}")
    elif isinstance(last, list) and isinstance(now, list) and len(last) == len(now):
        for each, was in zip(now, last, strict=True):
            yield from differences(each, was, where)
    elif now != last:
        yield f"{where}: {now} instead of {last}"


def inlined(part, defs):
    """A part of a schema with its references replaced, without what is written for people."""
    if isinstance(part, list):
        return [inlined(each, defs) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return inlined(defs[part["$ref"].removeprefix("#/$defs/")], defs)
    return {key: inlined(value, defs) for key, value in part.items() if key not in ("title", "description", "$defs")}


def without(case, key):
    return {name: value for name, value in case.items() if name != key}


def without_wait(record):
    """A record without why it waits, which comes back with the next decision, but whether it does."""
    decision = record.decision
    return record.with_decision(waits_for=None), decision.waits_for is None
