"""How many of a node's reports the coordinator stores."""

from muster_coordinator.evidence.quotas import DAY_S, RUNS_BURST, RUNS_PER_S, Quotas


def test_the_quota_of_bytes_refills_over_a_day():
    """A report may exceed what is left once; then the node must wait."""
    quotas = Quotas(1000.0)
    assert quotas.has_room("n1", 0.0)
    quotas.charge("n1", stored_bytes=1500.0)
    assert not quotas.has_room("n1", 0.0)
    assert not quotas.has_room("n1", DAY_S / 2)
    assert quotas.has_room("n1", DAY_S / 2 + 100)
    assert quotas.has_room("n2", 0.0)


def test_the_quota_of_runs_refills_at_a_rate():
    """Many runs at once are stored after an outage, and then a fixed number a second."""
    quotas = Quotas(1e9)
    taken, now = 0, 0.0
    while now < 60.0:
        if quotas.has_room("n1", now):
            quotas.charge("n1", runs=50)
            taken += 50
        now += 0.1
    assert RUNS_BURST + 59 * RUNS_PER_S <= taken <= RUNS_BURST + 60 * RUNS_PER_S + 50


def test_a_node_that_has_left_is_forgotten():
    """A new node with its name has the full quota."""
    quotas = Quotas(10.0)
    assert quotas.has_room("n1", 0.0)
    quotas.charge("n1", stored_bytes=100.0)
    quotas.forget("n1")
    assert quotas.has_room("n1", 0.0)
