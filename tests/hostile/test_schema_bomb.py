"""What a node announces about its checks keeps nobody waiting who asks for one of them."""

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.core.test_params_schema import bomb, chain, of
from tests.hostile.world import HOSTILE, Attacker, World
from tests.waiting import wait_for

from muster.wire.codec import MAX_MESSAGE_BYTES
from muster.wire.messages import Presence
from muster.wire.topics import NodeTopic

ANSWERED_S = 2.0
"""Within this, whoever asks for the check has an answer."""

OTHERS_ANSWERED_S = 1.0
"""Within this, everybody else has."""

SLOW = "a" * 40 + "!"

SCHEMAS: dict[str, tuple[dict[str, Any], Any]] = {
    "doubled allOf": (bomb(), 1),
    "a slow pattern": (of({"type": "string", "pattern": "^(a+)+$"}), SLOW),
    "slow names": ({**of({}), "patternProperties": {"^(a+)+$": {"type": "null"}}}, SLOW),
    "a long chain": (chain(2000), 1),
    "a circle": ({"$defs": {"a": {"$ref": "#/$defs/a"}}, **of({"$ref": "#/$defs/a"})}, 1),
    "unique items": (of({"type": "array", "uniqueItems": True}), [{"number": number} for number in range(20_000)]),
    "a megabyte": (of({"enum": list(range(65_000))}), -1),
    "ten thousand parameters": ({"properties": {f"size{number}": {} for number in range(10_000)}}, 1),
}


def announcement(name: str, checks: dict[str, str], schema: dict[str, Any]) -> bytes:
    """Checks by scope, and a name for all that, as a hostile program writes it: none of our models has seen it."""
    check = {"summary": "", "needs": "NOTHING", "cadence_s": None, "timeout_s": 20, "objective": None}
    said = {
        "schema": 1,
        "id": "bomb",
        "sent_at": time.time(),
        "node": HOSTILE,
        "inventory": {},
        "plugins": [{"name": name, "distribution": None, "version": None, "status": "loaded"}],
        "checks": [{"name": each, "scope": scope, "params": schema, **check} for each, scope in checks.items()],
    }
    payload = json.dumps(said, separators=(",", ":")).encode()
    assert len(payload) <= MAX_MESSAGE_BYTES
    return payload


def announce(world: World, attacker: Attacker, payload: bytes) -> None:
    """Comes to the fleet and says what it has; returns when the coordinator has taken or refused it.

    It says so again when nothing came of it: what goes beyond a node's allowance is dropped.
    """
    name = json.loads(payload)["plugins"][0]["name"]
    refused = world.counter("muster_messages_refused_total", kind="malformed")

    def is_done() -> bool:
        if world.counter("muster_messages_refused_total", kind="malformed") > refused:
            return True
        return any(plugin["name"] == name for plugin in world.api.get("nodes", HOSTILE)["plugins"])

    def is_heard() -> bool:
        attacker.say(NodeTopic.INVENTORY, payload, retain=True)
        deadline = time.monotonic() + 5
        while not is_done() and time.monotonic() < deadline:
            time.sleep(0.02)
        return is_done()

    attacker.say(NodeTopic.PRESENCE, Presence(sent_at=time.time(), node=HOSTILE, online=True), retain=True)
    wait_for(lambda: HOSTILE in [node["name"] for node in world.api.pages("nodes")["items"]], "the node to be known")
    wait_for(is_heard, "the announcement to be heard")


@contextmanager
def others_are_answered(world: World) -> Iterator[None]:
    """Asks for the fleet over and over while the context lasts, and fails when an answer took too long."""
    waits: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            begun = time.monotonic()
            world.ask("GET", "/api/v1/fleet")
            waits.append(time.monotonic() - begun)
            over.wait(0.02)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()
    assert max(waits) < OTHERS_ANSWERED_S


def ask(world: World, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """Status and answer, which come in time."""
    begun = time.monotonic()
    status, _, answer = world.ask("POST", path, body)
    assert time.monotonic() - begun < ANSWERED_S
    return status, answer


@pytest.mark.parametrize("case", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_keeps_nobody_waiting(world: World, attacker: Attacker, case: tuple[dict[str, Any], Any]) -> None:
    """A run and a sweep with the check are ordered or refused at once; whether the value fits, its node may say."""
    schema, value = case
    with others_are_answered(world):
        announce(world, attacker, announcement(f"bomb-{time.time()}", {"alone": "NODE", "meeting": "GROUP"}, schema))
        assert ask(world, f"/api/v1/nodes/{HOSTILE}/runs", {"check": "alone", "params": {"size": value}})[0] < 500
        for name in ("alone", "meeting"):
            for nodes in ([HOSTILE], [HOSTILE, "n2", "n3"]):
                body = {"check": name, "params": {"size": value}, "nodes": nodes}
                for path in ("/api/v1/sweeps/plan", "/api/v1/sweeps"):
                    assert ask(world, path, body)[0] < 500


def test_thousands_of_names_keep_nobody_waiting(world: World, attacker: Attacker) -> None:
    """Whoever mistypes a name gets a near one, and not after all that one node made up were compared with it."""
    letters = "abcdefgh" * 8
    shuffled = random.Random(1)
    names = ["".join(shuffled.sample(letters, len(letters))) for _ in range(4000)]
    with others_are_answered(world):
        announce(world, attacker, announcement(f"many-{time.time()}", dict.fromkeys(names, "NODE"), {}))
        for path, body in (("/api/v1/sweeps", {"check": letters}), ("/api/v1/nodes/n2/runs", {"check": letters})):
            status, problem = ask(world, path, body)
            assert (status, letters in problem["detail"]) == (422, True)
