"""kill -9 of the coordinator in the middle of a sweep of sixteen agents: afterwards it goes on, or ends, as is set."""

from collections import Counter

import psutil
import pytest

SLOW = "n1"


@pytest.fixture(params=["resume", "abort"])
def after_restart(request, sixteen):
    """What the coordinator of this test is to do about sweeps that were under way."""
    settings = sixteen.coordinator.settings
    settings["sweeps"] = {"after_restart": request.param}
    yield request.param
    del settings["sweeps"]


def groups_of(sweep):
    """The groups by id, in the order in which they were formed."""
    return {group["id"]: group for stage in sweep["rounds"] for group in stage["groups"]}


def half_done(sixteen, book, eventually):
    """A sweep in whose first round half of the pairs have ended, and the others have met and stay together."""
    nodes = [*sixteen.agents]
    sweep = sixteen.start_sweep(*nodes, strategy="adaptive", book=str(book), hosts=nodes, slow=[SLOW])
    for node in nodes:
        book.pid(f"met-{node}")
    pairs = [group["members"] for group in groups_of(sixteen.sweep(sweep)).values()]
    for host, _ in [pair for pair in pairs if SLOW not in pair][:4]:
        book.write(f"over-{host}")

    def states():
        return Counter(group["state"] for group in groups_of(sixteen.sweep(sweep)).values())

    eventually(lambda: states() == {"ENDED": 4, "RUNNING": 4}, "half of the pairs to have ended")
    return sixteen.sweep(sweep)


def check_nothing_ran_twice(sixteen, eventually, sweep):
    """Every member of a finished group has one run for it; no node has two for any, or one for none on record."""
    groups = groups_of(sweep).values()
    members = {(node, group["id"]) for group in groups for node in group["members"]}
    finished = {(node, group["id"]) for group in groups if group["ending"] == "FINISHED" for node in group["members"]}

    def stored():
        runs = (run for node in sixteen.agents for run in sixteen.runs(node, "meeting"))
        return Counter((run["node"], run["group"]) for run in runs if run["group"].startswith(sweep["id"]))

    eventually(lambda: finished <= stored().keys(), "the runs of the groups to be stored")
    counted = stored()
    assert counted.keys() <= members
    assert set(counted.values()) == {1}, counted


def test_a_coordinator_is_killed_in_the_middle_of_a_sweep(sixteen, after_restart, book, eventually):
    """What had ended stands, what was under way is interrupted, and no node stays leased or runs anything twice."""
    before = half_done(sixteen, book, eventually)
    ranks = book.pids("met-*")
    sixteen.coordinator.kill()
    sixteen.start_coordinator()
    eventually(lambda: not any(map(psutil.pid_exists, ranks)), "the ranks of the interrupted groups to be gone")
    book.write("over")
    after = sixteen.ended_sweep(before["id"])
    sixteen.wait_until_free(*sixteen.agents)
    earlier, groups = groups_of(before), groups_of(after)
    assert [*groups][: len(earlier)] == [*earlier]
    for name, group in earlier.items():
        if group["state"] == "ENDED":
            assert groups[name] == group
        else:
            assert (groups[name]["ending"], groups[name]["verdict"]) == ("INTERRUPTED", "UNKNOWN")
    check_nothing_ran_twice(sixteen, eventually, after)
    CHECKS[after_restart](after, earlier)


def check_resumed(sweep, earlier):
    """It has gone on with the next round, and found what there was to be found."""
    assert (sweep["state"], sweep["verdict"]) == ("finished", "FAIL"), sweep
    assert [failed["node"] for failed in sweep["failed_nodes"]] == [SLOW]
    assert sorted([*sweep["cleared_nodes"], SLOW]) == sorted(sweep["nodes"])
    assert {group["id"] for group in sweep["rounds"][0]["groups"]} == earlier.keys()
    assert len(sweep["rounds"]) > 1


def check_aborted(sweep, earlier):
    """It has ended with what it had found when its coordinator was killed, and convicts nobody."""
    reason = "the coordinator was restarted"
    assert (sweep["state"], sweep["verdict"], sweep["reason"]) == ("aborted", "UNKNOWN", reason)
    assert groups_of(sweep).keys() == earlier.keys()
    passed = {node for group in earlier.values() if group["state"] == "ENDED" for node in group["members"]}
    assert set(sweep["cleared_nodes"]) == passed
    assert set(sweep["inconclusive"]) == {*sweep["nodes"]} - passed


CHECKS = {"resume": check_resumed, "abort": check_aborted}
