"""The API server is down or overloaded when a node breaks: the action fails, shows that, and is done later."""

from benchmarks.kubernetes_standin.faults import Fault


def test_a_cordon_waits_for_the_api_server(fleet, cluster, muster, ecc):
    """What the operator sees meanwhile is that it has failed, and why."""
    fleet.join("cut-off")
    fleet.becomes("IN_SERVICE", "cut-off")
    with cluster.without_power():
        fleet.start_agent("cut-off", ecc)
        fleet.becomes("CORDONED", "cut-off", effect="FAILED")
        shown = muster("node", "show", "cut-off", "--url", fleet.url).stdout
    assert "kubernetes: FAILED" in shown
    assert f"node cut-off: no answer from {cluster.standin.url}: Connection refused" in shown
    fleet.becomes("CORDONED", "cut-off")
    assert cluster.node("cut-off").is_quarantined
    assert cluster.events("cut-off") == [("Normal", "InService"), ("Warning", "Cordoned")]
    fleet.leave("cut-off")


def test_an_overloaded_api_server_is_left_alone(fleet, cluster, ecc):
    """For as long as it wants to be; and one that fails is asked again soon. What was done by then stays done."""
    cluster.standin.order(Fault.TOO_MANY, verb="patch", path="*/unlucky", seconds=2)
    cluster.standin.order(Fault.INTERNAL, verb="get", path="*/unlucky")
    fleet.join("unlucky", faults=(ecc,))
    fleet.becomes("CORDONED", "unlucky")
    assert cluster.node("unlucky").is_quarantined
    refused, cordoned, *_ = cluster.patches("unlucky")
    assert (refused.code, cordoned.code, cordoned.at - refused.at >= 2) == (429, 200, True)
    assert len(cluster.cordons("unlucky")) == 2
    fleet.leave("unlucky")
