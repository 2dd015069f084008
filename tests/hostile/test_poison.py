"""An inventory that no agent sends harms only the node that sends it."""

import time

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
