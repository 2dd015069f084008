"""What somebody or something removes of muster's marks, without a word for the node, is put back by the survey."""

LOST = ("without-mark", "without-taint", "made-anew", "made-anew-with-taint")
BROKEN = [("False", "SimulatedEccUncorrected")]
STARTUP_TAINT = {"key": "muster.dev/accepting", "effect": "NoSchedule"}


def test_lost_marks_are_put_back(fleet, cluster, eventually, ecc):
    """Of nodes that are still cordoned, and of such as were created again under the same name."""
    fleet.join(*LOST, faults=(ecc,))
    fleet.becomes("CORDONED", *LOST)
    cluster.kubectl("annotate", "without-mark", "muster.dev/quarantine", None)
    cluster.kubectl("untaint", "without-taint", "muster.dev/quarantine")
    for node in LOST[2:]:
        cluster.kubectl("delete", node)
    cluster.register("made-anew")
    cluster.register("made-anew-with-taint", taints=[STARTUP_TAINT])
    for node in LOST:
        eventually(lambda node=node: cluster.node(node).is_quarantined, f"{node} to be marked again")
        eventually(lambda node=node: cluster.node(node).condition == BROKEN, f"{node}'s condition")
        assert fleet.case(node)["state"] == "CORDONED"
        assert "Kubernetes state differs from the decision; reapplying" in fleet.story(node, "drift")
    fleet.leave(*LOST)
