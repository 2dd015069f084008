"""kill -9 of the coordinator at every step of a cordon: afterwards each node was cordoned once, and is as decided."""

from benchmarks.kubernetes_standin.faults import Fault

STEPS = {
    "before-patch": ("get", "/api/v1/nodes/before-patch"),
    "after-cordon": ("patch", "/api/v1/nodes/after-cordon"),
    "after-event": ("create", "/api/v1/namespaces/default/events"),
}
"""By node, verb and path of the request that is under way when the coordinator is killed."""

BROKEN = [("False", "SimulatedEccUncorrected")]
FOR_EVER = {"times": 1000, "seconds": 1000.0}


def test_a_cordon_goes_on_where_the_last_coordinator_was_killed(fleet, cluster, eventually, ecc):
    """Nothing is done twice, and nothing is left undone."""
    for verb, path in STEPS.values():
        cluster.standin.order(Fault.SLOW, verb=verb, path=path, **FOR_EVER)
    fleet.join(*STEPS, faults=(ecc,))
    for verb, path in STEPS.values():
        eventually(lambda verb=verb, path=path: is_under_way(cluster, verb, path), f"{verb} {path} to be under way")
    fleet.coordinator.kill()
    cluster.standin.orders.open.clear()
    fleet.start_coordinator()
    fleet.becomes("CORDONED", *STEPS)
    for node in STEPS:
        found = cluster.node(node)
        assert found.is_quarantined
        eventually(lambda node=node: cluster.node(node).condition == BROKEN, f"{node}'s condition")
        assert (len(cluster.cordons(node)), cluster.events(node)) == (1, [("Warning", "Cordoned")])
        assert sum("ACCEPTING to CORDONED" in text for text in fleet.story(node, "service")) == 1
    fleet.leave(*STEPS)


def is_under_way(cluster, verb, path):
    """Whether such a request has come and has no answer yet."""
    return any((it.verb, it.path, it.code) == (verb, path, None) for it in cluster.standin.requests)
