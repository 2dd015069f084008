"""kill -9 while a group forms or runs: the group ends, who is to blame is named, and the others are free again."""

import os
import signal
import time

import psutil
import pytest

MEMBERS = ("n1", "n2", "n3")
OTHERS = {"n1": ("n2", "n3"), "n2": ("n1", "n3")}


def start_meeting(fleet, book):
    return fleet.start_meeting(book, *MEMBERS, hosts=("n1",))


def blamed(group):
    return [(blame["node"], blame["reason"]) for blame in group["blamed"]]


def check_all_is_well(fleet, book, eventually, *nodes):
    """Nothing is left of the group, its members are free, and a sweep over them passes at once."""
    eventually(book.is_closed, "every rank to be gone")
    fleet.wait_until_free(*nodes)
    book.write("over")
    sweep = fleet.ended_sweep(fleet.start_sweep(*nodes, book=str(book)))
    assert (sweep["verdict"], sorted(sweep["cleared_nodes"])) == ("PASS", sorted(nodes)), sweep


@pytest.mark.parametrize("victim", ["n2", "n1"], ids=["agent", "agent of rank 0"])
def test_an_agent_in_a_running_group_is_killed(fleet, book, eventually, victim):
    """It alone is blamed, as lost; with it die its ranks, so that its port is free."""
    sweep = start_meeting(fleet, book)
    family = fleet.agents[victim].family()
    fleet.agents[victim].kill()
    ended = fleet.ended_sweep(sweep)
    (group,) = ended["rounds"][0]["groups"]
    assert (group["ending"], blamed(group)) == ("ABORTED", [(victim, "lost")])
    assert ended["verdict"] == "UNKNOWN"
    assert victim in ended["inconclusive"]
    assert not ended["failed_nodes"]
    eventually(lambda: not any(map(psutil.pid_exists, family)), "its processes to be gone")
    check_all_is_well(fleet, book, eventually, *OTHERS[victim])


@pytest.mark.parametrize("victim", ["n2", "n1"], ids=["rank", "rank 0"])
def test_the_process_of_a_rank_is_killed(fleet, book, eventually, victim):
    """Its node is blamed, not those that lost it; all three are free, and a sweep over them passes."""
    sweep = start_meeting(fleet, book)
    os.kill(book.pid(f"met-{victim}"), signal.SIGKILL)
    ended = fleet.ended_sweep(sweep)
    (group,) = ended["rounds"][0]["groups"]
    assert (group["verdict"], blamed(group)) == ("UNKNOWN", [(victim, "run.killed")])
    check_all_is_well(fleet, book, eventually, *MEMBERS)


@pytest.mark.torch
@pytest.mark.parametrize("victim", [1, 0], ids=["rank", "rank 0"])
def test_the_process_of_a_rank_is_killed_in_a_real_collective(fleet, eventually, victim):
    """The other ranks of gloo fail within a moment of it; still only the one that was killed is blamed."""
    sweep = fleet.start_sweep(*MEMBERS, check="collective", size_bytes=4096, iterations=100_000)
    eventually(lambda: fleet.sweep(sweep)["rounds"][0]["groups"][0]["state"] == "RUNNING", "the ranks to run")
    places = fleet.sweep(sweep)["rounds"][0]["groups"][0]["places"]
    node = next(place["node"] for place in places if place["first_rank"] == victim)
    os.kill(fleet.agents[node].rank_process(), signal.SIGKILL)
    killed = time.monotonic()
    (group,) = fleet.ended_sweep(sweep)["rounds"][0]["groups"]
    assert time.monotonic() - killed < 15
    assert blamed(group) == [(node, "run.killed")], group
    fleet.wait_until_free(*MEMBERS)


def test_a_group_that_loses_a_member_while_it_forms_is_formed_again(fleet, book, eventually):
    """Before its ranks run the group is formed again without the one that is lost; the rest is cleared."""
    sweep = fleet.start_sweep(*MEMBERS, book=str(book), door="closed")
    for node in MEMBERS:
        book.pid(f"came-{node}")
    fleet.agents["n1"].kill()
    eventually(lambda: len(fleet.sweep(sweep)["rounds"][0]["groups"]) == 2, "the group to be formed again")
    book.write("open")
    ended = fleet.ended_sweep(sweep)
    first, second = ended["rounds"][0]["groups"]
    assert (first["ending"], blamed(first)) == ("NOT_FORMED", [("n1", "lost")])
    assert (second["ending"], second["members"], second["verdict"]) == ("FINISHED", ["n2", "n3"], "PASS")
    assert (ended["cleared_nodes"], ended["inconclusive"]) == (["n2", "n3"], ["n1"])
    check_all_is_well(fleet, book, eventually, "n2", "n3")
