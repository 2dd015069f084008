"""An inventory that no agent sends harms only the node that sends it."""

import time

from tests.hostile.world import HOSTILE

from muster.model import MOST_WAITING
from muster.wire.topics import NodeTopic


def test_an_odd_check_name_does_not_end_the_coordinator(world, attacker, eventually):
    """It refuses the message and keeps running. It also starts again while the broker retains the message."""

    def refused():
        return world.counter("muster_messages_refused_total", kind="malformed")

    poison = (
        b'{"schema":1,"id":"x","sent_at":%f,"node":"n1","inventory":{},"plugins":[],"checks":[{"name":"odd name/#",'
        b'"summary":"","scope":"NODE","needs":"NOTHING","cadence_s":1,"timeout_s":1e300,"objective":null,"params":{}}]}'
    ) % time.time()
    attacker.join()
    before = refused()
    attacker.send(NodeTopic.INVENTORY, poison, retain=True)
    eventually(lambda: refused() > before, "the refusal")
    attacker.leave()
    assert world.coordinator.runs
    world.coordinator.kill()
    world.start_coordinator()
    eventually(refused, "the refusal of the retained message after the restart")
    assert world.ask("GET", "/readyz")[0] == 200


def test_an_impossible_outbox_does_not_count(world, attacker, eventually):
    """The heartbeat is refused, and the number of runs that wait at agents stays what it was."""
    claim = b'{"schema":1,"id":"x","sent_at":%f,"node":"%s","online":true,"outbox":%d}' % (
        time.time(),
        HOSTILE.encode(),
        1 << 52,
    )
    attacker.join()
    before = world.counter("muster_messages_refused_total", kind="malformed")
    attacker.send(NodeTopic.PRESENCE, claim)
    eventually(lambda: world.counter("muster_messages_refused_total", kind="malformed") > before, "the refusal")
    attacker.leave()
    assert world.counter("muster_runs_unacknowledged") < MOST_WAITING
