"""References that an operator sets on the command line judge the next run of every node."""

import json

import pytest

WHERE = ("simulated", "temperature_headroom_c", "--when", "simulated=true")


@pytest.fixture
def reference(fleet, muster):
    """Runs `muster reference …` against the fleet; gives stdout."""

    def run(*arguments):
        done = muster("reference", *arguments, env=fleet.env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_reference_changes_the_verdict_of_the_next_run(fleet, reference):
    """Set, it judges on every node, also on one that starts later and after a restart of broker and coordinator."""
    assert fleet.run("n1", "simulated")["verdict"] == "PASS"
    reference("set", *WHERE, "--fail-below", "1000", "--source", "a test")
    judged = fleet.run("n1", "simulated")
    assert judged["verdict"] == "FAIL"
    assert {finding["evidence"]["source"] for finding in judged["findings"]} == {"a test"}
    (explained,) = json.loads(reference("explain", judged["id"], "--json"))["items"]
    metric = next(item for item in explained["metrics"] if item["metric"] == "temperature_headroom_c")
    assert [item["applies"] for item in metric["considered"]] == [True, False]
    assert metric["considered"][0]["reference"]["origin"] == "operator"

    for part in (fleet.coordinator, fleet.agents["n2"]):
        part.kill()
    fleet.broker.stop()
    fleet.set_right()
    assert fleet.run("n2", "simulated")["verdict"] == "FAIL"

    reference("remove", *WHERE)
    assert {fleet.run(node, "simulated")["verdict"] for node in ("n1", "n2")} == {"PASS"}
