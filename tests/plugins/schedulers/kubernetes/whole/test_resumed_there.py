"""A person uncordons a node, and `resume_by_hand = "there"` keeps it drained elsewhere until somebody releases it."""

import pytest


@pytest.fixture(scope="module")
def there(new_fleet):
    """A fleet that enforces, with two good nodes."""
    with new_fleet("enforce") as fleet:
        fleet.coordinator.settings["quarantine"]["resume_by_hand"] = "there"
        fleet.coordinator.settings["quarantine"]["returning"]["pause_s"] = 6.0  # a survey comes between two rounds
        fleet.start_coordinator()
        fleet.join("good-3", "good-4")
        fleet.becomes("IN_SERVICE", "good-3", "good-4")
        yield fleet
        fleet.leave("good-3", "good-4")


def test_a_released_node_is_tested_and_returns(there, cluster, muster, eventually, ecc):
    """The release is a new decision: the node is drained while it is tested, and in service once it has passed."""
    there.join("mended", faults=(ecc,))
    there.becomes("CORDONED", "mended")
    cluster.kubectl("uncordon", "mended")
    eventually(lambda: there.case("mended")["hold"], "the hold")
    assert there.case("mended")["state"] == "CORDONED"
    there.start_agent("mended")
    eventually(lambda: not there.case("mended")["requirement"], "the fault to clear")

    released = muster("quarantine", "release", "mended", "--reason", "new GPU", "--url", there.url)
    assert released.returncode == 0, released.stderr
    there.becomes("PROBATION", "mended")
    assert cluster.node("mended").is_quarantined
    there.becomes("IN_SERVICE", "mended")
    node = cluster.node("mended")
    assert (node.cordoned, node.taints, node.mark) == (False, [], None)

    there.start_agent("mended", ecc)
    there.becomes("CORDONED", "mended")
    assert cluster.node("mended").is_quarantined, "drained for the new fault"
    there.leave("mended")
