"""A parameter schema that a node announces delays no request to the coordinator.

A request is delayed while the coordinator computes something else. So the tests take the processor time that it uses
from the request to the answer, which other programs on the machine do not change.
"""

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
from tests.core.test_params_schema import bomb, chain, of
from tests.hostile.world import HOSTILE, Attacker, World

from muster.wire.codec import MAX_MESSAGE_BYTES

ANSWERED_S = 2.0
"""Limit for a request that names the check, in processor time of the coordinator."""

OTHERS_ANSWERED_S = 1.0
"""Limit for any other request."""

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
    """An inventory that a hostile program writes, without our models; `name` is that of its plugin.

    `checks` are scopes by the name of the check; all of them have this parameter schema.
    """
    check = {"summary": "", "needs": "NOTHING", "cadence_s": None, "timeout_s": 20, "objective": None}
    inventory = {
        "schema": 1,
        "id": "bomb",
        "sent_at": time.time(),
        "node": HOSTILE,
        "inventory": {},
        "plugins": [{"name": name, "distribution": None, "version": None, "status": "loaded"}],
        "checks": [{"name": each, "scope": scope, "params": schema, **check} for each, scope in checks.items()],
    }
    payload = json.dumps(inventory, separators=(",", ":")).encode()
    assert len(payload) <= MAX_MESSAGE_BYTES
    return payload


@contextmanager
def others_are_answered(world: World) -> Iterator[None]:
    """Requests the fleet over and over while the context lasts; fails if much was computed before an answer."""
    used: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            before = processor_s(world)
            world.ask("GET", "/api/v1/fleet")
            used.append(processor_s(world) - before)
            over.wait(0.02)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()
    assert max(used) < OTHERS_ANSWERED_S


def ask(world: World, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """Status and JSON of the answer; fails if the coordinator did too much before."""
    before = processor_s(world)
    status, _, answer = world.ask("POST", path, body)
    assert processor_s(world) - before < ANSWERED_S
    return status, answer


def processor_s(world: World) -> float:
    """The processor time that the coordinator has used so far."""
    return sum(psutil.Process(world.coordinator.pid).cpu_times()[:2])


@pytest.mark.parametrize("case", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_delays_no_request(world: World, attacker: Attacker, case: tuple[dict[str, Any], Any]) -> None:
    """A run and a sweep with the check are accepted or refused at once; only the node validates the value fully."""
    schema, value = case
    with others_are_answered(world):
        world.announce(attacker, announcement(f"bomb-{time.time()}", {"alone": "NODE", "meeting": "GROUP"}, schema))
        assert ask(world, f"/api/v1/nodes/{HOSTILE}/runs", {"check": "alone", "params": {"size": value}})[0] < 500
        for name in ("alone", "meeting"):
            for nodes in ([HOSTILE], [HOSTILE, "n2", "n3"]):
                body = {"check": name, "params": {"size": value}, "nodes": nodes}
                for path in ("/api/v1/sweeps/plan", "/api/v1/sweeps"):
                    assert ask(world, path, body)[0] < 500


def test_thousands_of_names_delay_no_request(world: World, attacker: Attacker) -> None:
    """The search for a similar name is bounded, even if one node announces thousands of similar names."""
    letters = "abcdefgh" * 8
    shuffled = random.Random(1)
    names = ["".join(shuffled.sample(letters, len(letters))) for _ in range(4000)]
    with others_are_answered(world):
        world.announce(attacker, announcement(f"many-{time.time()}", dict.fromkeys(names, "NODE"), {}))
        for path, body in (("/api/v1/sweeps", {"check": letters}), ("/api/v1/nodes/n2/runs", {"check": letters})):
            status, problem = ask(world, path, body)
            assert (status, letters in problem["detail"]) == (422, True)
