"""What people may decide about service states through the API, who they must say they are, and what is refused."""

import itertools

import pytest

from muster.quarantine_settings import BudgetSettings, MassEventSettings, QuarantineSettings

WORD = {"by": "ann@ops", "reason": "swapping a fan"}
ROOT = "/api/v1/quarantine"
DECISIONS = (*(f"/api/v1/nodes/n1/{what}" for what in ("hold", "release", "forget")), f"{ROOT}/unfreeze")
NOT_SAID = (None, "", "  ", "two\nlines", "\x1b[2J", "\x00", "a\x9bm", "x" * 501)


async def test_a_held_node_is_left_alone_until_it_is_released(api):
    """Who holds it and why stands in the list; what is then done follows from how it is then."""
    held = await api.post("/api/v1/nodes/n1/hold", **WORD)
    assert (held["hold"]["by"], held["hold"]["reason"]) == ("ann@ops", "swapping a fan")
    await api.report("n1", "nvml.device_lost")
    (listed,) = (await api.get(ROOT))["items"]
    assert (listed["node"], listed["state"], listed["requirement"]["row"]) == ("n1", "IN_SERVICE", "gpu-lost")
    released = await api.post("/api/v1/nodes/n1/release", **WORD)
    assert released["hold"] is None
    await api.until_out("n1")


async def test_a_node_can_be_released_untested(api):
    """It is back at once, what stood against it counts no more, and the history says on whose word."""
    await api.report("n1", "nvml.device_lost")
    await api.until_out("n1")
    back = await api.post("/api/v1/nodes/n1/release", **WORD, untested=True)
    assert (back["state"], back["requirement"]) == ("IN_SERVICE", None)
    (latest, *_) = (await api.get(f"{ROOT}/history"))["items"]
    assert (latest["transition"]["after"], latest["transition"]["by"]) == ("IN_SERVICE", "ann@ops")


async def test_the_history_has_what_people_asked_for(api):
    """Who, when and why, also where it has changed no service state; the latest first."""
    await api.post("/api/v1/nodes/n1/hold", **WORD)
    await api.post("/api/v1/nodes/n1/release", **WORD | {"reason": "the fan is swapped"})
    released, held, accepted = (await api.get(f"{ROOT}/history?node=n1"))["items"]
    assert held["request"] == {"kind": "hold_requested", "node": "n1", **WORD}
    assert released["request"] == {
        "kind": "release_requested",
        "node": "n1",
        "by": "ann@ops",
        "reason": "the fan is swapped",
        "untested": False,
    }
    assert accepted["transition"]["at"] <= held["at"] <= released["at"]
    assert (await api.get(f"{ROOT}/history?limit=1"))["items"] == [released]


async def test_a_node_that_is_away_for_good_can_be_forgotten(api):
    """It leaves the lists and the budget; its story and its history stay, with who has said so."""
    await api.lose("n1")
    (listed,) = (await api.get(ROOT))["items"]
    assert (listed["node"], listed["state"]) == ("n1", "IN_SERVICE")
    left = (await api.post("/api/v1/nodes/n1/forget", **WORD))["quarantine"]
    assert (left["nodes"], left["away"]) == (3, 0)
    assert (await api.get(ROOT))["items"] == []
    assert [node["name"] for node in (await api.get("/api/v1/nodes"))["items"]] == ["n2", "n3", "n4"]
    assert (await api.get("/api/v1/fleet"))["lost"] == []
    for path in ("nodes/n1", "nodes/n1/case"):
        assert (await api.ask("GET", f"/api/v1/{path}"))[0] == 404
    (latest, *_) = (await api.get("/api/v1/nodes/n1/story"))["items"]
    assert (latest["kind"], latest["text"]) == ("forgotten", "forgotten by ann@ops: swapping a fan")
    (asked, *_) = (await api.get(f"{ROOT}/history?node=n1"))["items"]
    assert asked["request"] == {"kind": "node_forgotten", "node": "n1", **WORD}


async def test_a_node_that_is_there_is_not_forgotten(api):
    """The answer says what to do instead."""
    assert "stop its agent first" in await api.refused(422, "/api/v1/nodes/n1/forget", WORD)
    assert (await api.get("/api/v1/nodes/n1"))["service"] == "IN_SERVICE"


async def test_there_must_be_something_to_release(api):
    """One that is in service and that nobody holds is not released."""
    said = await api.refused(422, "/api/v1/nodes/n1/release", WORD)
    assert "n1 is IN_SERVICE and has no hold; nothing to release" in said


async def test_an_unknown_node_is_refused(api):
    """Also its history: an empty list would say that nothing has ever happened to it."""
    for what in ("hold", "release", "forget"):
        status, problem = await api.ask("POST", f"/api/v1/nodes/n9/{what}", json=WORD)
        assert (status, problem["detail"].startswith("unknown node 'n9'")) == (404, True)
    for path in ("/api/v1/nodes/n9/case", "/api/v1/nodes/n9/story", f"{ROOT}/history?node=n9"):
        status, problem = await api.ask("GET", path)
        assert (status, problem["detail"].startswith("unknown node 'n9'")) == (404, True)


async def test_a_decision_carries_who_and_why(api):
    """In one line of text each, with something to read; nothing changes without."""
    for path, name, text in itertools.product(DECISIONS, ("by", "reason"), NOT_SAID):
        body = {key: value for key, value in {**WORD, name: text}.items() if value is not None}
        assert f"field {name!r}" in await api.refused(422, path, body)
    for path in DECISIONS:
        assert "'force'" in await api.refused(422, path, {**WORD, "force": True})
    assert await api.get(ROOT) == {"items": [], "next_cursor": None}


@pytest.mark.parametrize(
    "rules",
    [
        QuarantineSettings(
            mode="enforce", budget=BudgetSettings(share="50%", per_minute=6000), mass_event=MassEventSettings(nodes=2)
        )
    ],
)
async def test_a_freeze_is_shown_and_can_be_lifted(api):
    """Two nodes with the same are one event here: none goes before somebody says that it is their own fault."""
    await api.report("n1", "nvml.device_lost")
    await api.report("n2", "nvml.device_lost")
    (frozen,) = (await api.get(f"{ROOT}/budget"))["quarantine"]["frozen"]
    assert (frozen["cause"], frozen["nodes"]) == ("nvml.device_lost", 2)
    lifted = await api.post(f"{ROOT}/unfreeze", **WORD)
    assert lifted["quarantine"]["frozen"] == []
    await api.until_out("n1", "n2")
    assert "nothing is frozen" in await api.refused(422, f"{ROOT}/unfreeze", WORD)
    asked = [it["request"] for it in (await api.get(f"{ROOT}/history"))["items"] if "request" in it]
    assert asked == [{"kind": "freeze_lifted", **WORD}]
