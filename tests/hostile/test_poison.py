"""What one node says about itself harms nobody but itself."""

import time

from muster.wire.topics import NodeTopic


def test_an_odd_check_name_ends_nobody(world, attacker, eventually):
    """The coordinator goes on, refuses the message, and starts again while the broker still keeps it."""
    poison = (
        b'{"schema":1,"id":"x","sent_at":%f,"node":"n1","inventory":{},"plugins":[],"checks":[{"name":"odd name/#",'
        b'"summary":"","scope":"NODE","needs":"NOTHING","cadence_s":1,"timeout_s":1e300,"objective":null,"params":{}}]}'
    ) % time.time()
    attacker.join()
    attacker.say(NodeTopic.INVENTORY, poison, retain=True)
    eventually(lambda: world.counter("muster_messages_refused_total", kind="malformed") or None, "the refusal")
    attacker.leave()
    assert world.coordinator.runs
    world.coordinator.kill()
    world.start_coordinator()
    eventually(lambda: world.ask("GET", "/readyz")[0] == 200, "the coordinator to be ready")
    assert world.coordinator.runs
