"""`muster quarantine`: who is out and why, in words, and what people decide about it."""

import asyncio
import getpass
import json
import re
import socket

import pytest

from muster.model import Action, Finding, Severity

LOST = Finding(
    code="nvml.device_lost", summary="no answer", severity=Severity.ERROR, action=Action.REBOOT_NODE, device=3
)
CAUSE = "lost GPU3: nvml.device_lost; reboot the node; no answer (policy row gpu-lost)"
NODES = ("bad", "fine", "good", "worse")
REASON = ("--reason", "swapping a fan")
SCRIPT = """#!/bin/sh
cat > /dev/null
echo "asked about $MUSTER_NODE"
[ "$MUSTER_NODE" != worse ]
"""


@pytest.fixture
def more_settings(tmp_path):
    """A quarantine that is in force, with an actor that fails for the node `worse`."""
    script = tmp_path / "actor"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    return {
        "MUSTER_QUARANTINE__MODE": "enforce",
        "MUSTER_QUARANTINE__BUDGET": json.dumps({"share": "50%", "per_minute": 6000}),
        "MUSTER_QUARANTINE__TRUST_LOOPBACK": "true",
        "MUSTER_PLUGINS__SCRIPT__ACTOR": json.dumps({"path": str(script), "can_cordon": True}),
    }


@pytest.fixture
async def told(coordinator, nodes, eventually, muster):
    """Runs `muster …` against a coordinator with four nodes, two of which have lost a GPU."""

    def are(state, *names):
        cases = [coordinator.get(f"/api/v1/nodes/{name}/case") for name in names]
        return all(case["state"] == state and case["outcomes"] for case in cases)

    async with nodes(coordinator, *NODES) as them:
        for node in them.values():
            await node.report("gemm")
        await eventually(lambda: are("IN_SERVICE", *NODES))
        for name in ("bad", "worse"):
            await them[name].report("nvml", "FAIL", findings=(LOST,))
        await eventually(lambda: are("CORDONED", "bad", "worse"))

        async def run(*arguments):
            return await asyncio.to_thread(muster, *arguments, env=coordinator.env)

        yield run


async def lines(told, *arguments):
    """What a command prints, by line, when it goes well."""
    done = await told(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def words(line):
    """The cells of a line of a table."""
    return re.split("  +", line)


async def test_list_says_who_is_out_and_why(told):
    """A line for each, and below it what could not be done."""
    failure = ""
    async with asyncio.timeout(30):
        while "next try at" not in failure:  # the next try has a time only between two tries
            header, bad, worse, failure = await lines(told, "quarantine", "list")
    assert words(header) == ["NODE", "STATE", "SINCE", "WHY"]
    assert words(bad)[:2] == ["bad", "CORDONED"]
    assert words(bad)[3].startswith(f"{CAUSE}; Retest after 2")
    assert words(worse)[:2] == ["worse", "CORDONED"]
    assert failure.strip().startswith("script: FAILED")
    assert "exit code 1: asked about worse; next try at " in failure


async def test_a_node_s_page_and_story_tell_of_it(told):
    """`show` says why it is out, `story` each step from what was found to what the actor did."""
    shown = await lines(told, "node", "show", "worse")
    assert "CORDONED" in shown[0]
    assert f"  {CAUSE}" in shown
    assert any(line.startswith("  script: FAILED") for line in shown)
    story = [line.split(maxsplit=2)[1:] for line in await lines(told, "node", "story", "bad")]
    assert [kind for kind, _ in story][-5:] == ["found", "health", "policy", "service", "action"]
    assert story[-5][1] == "nvml.device_lost: device 3: no answer"
    assert story[-2][1].startswith("IN_SERVICE to CORDONED: ")
    assert story[-1][1] == "script: DONE: exit code 0: asked about bad"


async def test_budget_and_history_say_what_was_done_by_whom(told):
    """Mode, limits, who is away, and the actors; what was decided and what came of it, the latest first."""
    said = await lines(told, "quarantine", "budget")
    assert said[:5] == [
        "mode: enforce: faulty nodes are drained and returned to service",
        "away: 2 of 4 nodes, limit 2",
        "rate: at most 6000 drains in a minute",
        "waiting to be drained (HELD): none",
        "frozen: no",
    ]
    assert words(said[-2]) == ["ACTOR", "CAN DRAIN", "STATE"]
    assert words(said[-1])[:2] == ["script", "yes"]
    assert words(said[-1])[2].startswith("works: script /")

    header, latest, outcome, first, *_ = await lines(told, "quarantine", "history", "bad")
    assert words(header) == ["TIME", "NODE", "WHAT", "BY", "REASON"]
    assert words(latest)[1:4] == ["bad", "IN_SERVICE to CORDONED", "-"]
    assert words(latest)[4].startswith("lost GPU3: nvml.device_lost; ")
    assert outcome == "    script: DONE: exit code 0: asked about bad"
    assert words(first)[1:3] == ["bad", "ACCEPTING to IN_SERVICE"]
    both = await lines(told, "quarantine", "history", "--limit", "2")
    assert {words(line)[1] for line in both[1:] if line[0] != " "} == {"bad", "worse"}


async def test_people_hold_and_release_in_their_own_name(told):
    """By default that of the user who types it; the history has it."""
    held = (await lines(told, "quarantine", "hold", "good", *REASON))[1]
    assert words(held)[0:2] == ["good", "IN_SERVICE"]
    assert words(held)[3] == f"Hold by {getpass.getuser()}@{socket.gethostname()}: swapping a fan"
    assert any(words(line)[0] == "good" for line in await lines(told, "quarantine", "list"))
    released = await lines(told, "quarantine", "release", "good", *REASON, "--by", "ann")
    assert words(released[1])[3:] == ["-"]
    back = await lines(told, "quarantine", "release", "bad", *REASON, "--by", "ann", "--untested")
    assert words(back[1])[:2] == ["bad", "IN_SERVICE"]
    assert "nvml.device_lost GPU3 still stands: when nvml reports it again, muster drains the node again" in back[1]
    history = [words(line) for line in (await lines(told, "quarantine", "history"))[1:]]
    assert [line[1:4] for line in history if line[3:] and line[3] == "ann"] == [
        ["bad", "CORDONED to IN_SERVICE", "ann"],
        ["bad", "release, untested", "ann"],
        ["good", "release", "ann"],
    ]


async def test_who_is_away_for_good_is_forgotten(told, coordinator, nodes, eventually):
    """The answer says how many are away now; the next who asks for the node is told that there is none."""
    async with nodes(coordinator, "away") as them:
        await them["away"].leave()
    await eventually(lambda: coordinator.get("/api/v1/nodes/away")["lost"])
    said = await lines(told, "node", "forget", "away", "--reason", "given back", "--by", "ann")
    assert said == ["away is forgotten; 2 of 4 nodes are out of service now"]
    assert "unknown node 'away'" in (await told("node", "show", "away")).stderr
    assert (await lines(told, "node", "story", "away"))[-1].endswith("forgotten  forgotten by ann: given back")


async def test_json_is_what_the_api_answers(told, coordinator):
    """And nothing else is printed."""
    (listed,) = await lines(told, "quarantine", "list", "--json")
    assert [item["node"] for item in json.loads(listed)["items"]] == ["bad", "worse"]
    for arguments, path in {
        ("budget",): "quarantine/budget",
        ("history", "bad"): "quarantine/history?node=bad",
        ("hold", "good", *REASON): "nodes/good/case",
        ("release", "good", *REASON): "nodes/good/case",
    }.items():
        assert json.loads("\n".join(await lines(told, "quarantine", *arguments, "--json"))) == coordinator.get(
            f"/api/v1/{path}"
        )


async def test_what_cannot_be_done_is_refused(told):
    """In one line that says why."""
    for arguments, said in {
        ("hold", "nobody", *REASON): "unknown node 'nobody'",
        ("history", "nobody"): "unknown node 'nobody'",
        ("release", "fine", *REASON): "fine is IN_SERVICE and has no hold; nothing to release",
        ("unfreeze", *REASON): "nothing is frozen",
        ("hold", "fine", "--reason", ""): "'reason'",
    }.items():
        done = await told("quarantine", *arguments)
        assert (done.returncode, done.stdout) == (64, "")
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
