"""Halves of whatever is bad."""

from muster_coordinator.localize.strategies.bisection import Bisection
from muster_coordinator.model.probes import CheckAbilities, GroupRun, RunOutcome, Site

SITES = {node: Site(node, leaf="x") for node in "abcdefghijklmnop"}
CAN = CheckAbilities(alone=False, by_rail=False)


def run(nodes: str, outcome: RunOutcome = RunOutcome.GOOD, crashed: str = "") -> GroupRun:
    """A run of nodes that are named by one letter each."""
    return GroupRun(group=nodes, members=tuple(nodes), outcome=outcome, crashed=frozenset(crashed))


def bad(nodes: str, crashed: str = "") -> GroupRun:
    return run(nodes, RunOutcome.BAD, crashed)


def asked(*runs: GroupRun, absent: str = "", sites: dict[str, Site] = SITES) -> list[str]:
    probes = Bisection(sites, CAN, "s").next_groups(runs, frozenset(absent))
    return ["".join(probe.members) for probe in probes]


REST = (run("efgh"), run("ijkl"), run("mnop"))


def test_parts_run_side_by_side() -> None:
    """At least four, of eight nodes at most, of two at least; an odd one waits for a partner that has passed."""
    assert asked() == ["abcd", "efgh", "ijkl", "mnop"]
    assert asked(sites={f"n{n:02}": Site(f"n{n:02}") for n in range(80)})[0] == "n00n01n02n03n04n05n06n07"
    five = {node: Site(node) for node in "abcde"}
    assert asked(sites=five) == ["ab", "cd"]
    (pair,) = asked(run("ab"), run("cd"), sites=five)
    assert "e" in pair


def test_what_is_bad_is_halved_until_partners_can_tell() -> None:
    """Nothing else is run meanwhile."""
    assert asked(bad("abcd"), *REST) == ["ab", "cd"]
    halves = (bad("abcd"), *REST, bad("ab"), run("cd"))
    pairs = asked(*halves)
    assert sorted(pair[0] for pair in pairs) == ["a", "b"]
    assert all(pair[1] in "cdefghijklmnop" for pair in pairs)
    assert asked(*halves, *map(run, pairs)) != []


def test_several_faults_are_followed_at_once() -> None:
    """In different parts, and in both halves of one."""
    assert asked(bad("abcd"), bad("efgh"), *REST[1:]) == ["ab", "cd", "ef", "gh"]
    found = asked(bad("abcd"), *REST, bad("ab"), bad("cd"))
    assert sorted(node for pair in found for node in pair if node in "abcd") == ["a", "b", "c", "d"]


def test_between_halves_that_are_well() -> None:
    """Crosswise, each with one and then with the other, down to a pair."""
    halves = (bad("abcd"), *REST, run("ab"), run("cd"))
    assert asked(*halves) == ["ac", "bd"]
    assert asked(*halves, run("ac"), run("bd")) == ["ad", "bc"]
    assert asked(*halves, run("ac"), run("bd"), run("ad"), run("bc")) == []
    nowhere = {node: Site(node) for node in SITES}
    crossed = (bad("ac"), run("bd"), run("ad"), run("bc"))
    assert asked(*halves, *crossed, sites=nowhere) == ["ac"]


def test_whose_ranks_crashed_is_set_apart() -> None:
    """The others of its part run without it, while it meets a partner."""
    first, *others = asked(bad("abcd", crashed="b"), *REST)
    assert first == "acd"
    assert ["b" in pair for pair in others] == [True]


def test_runs_that_say_nothing_are_repeated_once() -> None:
    """Then their group is halved as if it were bad."""
    void = run("abcd", RunOutcome.VOID)
    assert asked(void, *REST) == ["abcd"]
    assert asked(void, void, *REST) == ["ab", "cd"]


def test_absent_nodes_make_a_bad_group_run_again() -> None:
    """It may have been theirs; a group that was well stays so."""
    assert asked(bad("abcd"), *REST, absent="b") == ["acd"]
    assert asked(bad("abcd"), *REST, bad("acd"), absent="b")[0] == "cd"
    assert asked(run("abcd"), *REST, absent="b") == []
    assert asked(absent="bcd") == ["efgh", "ijkl", "mnop"]
