"""`muster quarantine replay` on a database that a real coordinator wrote, beside it and after it."""

import asyncio
import json
from zoneinfo import ZoneInfo

import pytest

from muster.instants import instant_text
from muster.model import Action, Finding, Severity, parse_instant

LOST = Finding(
    code="nvml.device_lost", summary="no answer", severity=Severity.ERROR, action=Action.REBOOT_NODE, device=3
)
NODES = ("bad", "fine", "good", "worse")
LEAVE = '[[row]]\nname = "leave"\ncodes = ["nvml.*"]\nservice = "IN_SERVICE"\nreason = "ours"'


@pytest.fixture
def more_settings():
    """A dry run in which only one of four nodes may be away."""
    return {
        "MUSTER_QUARANTINE__MODE": "dry-run",
        "MUSTER_QUARANTINE__BUDGET": json.dumps({"share": "25%", "per_minute": 6000}),
        "MUSTER_HTTP__TRUST_LOOPBACK": "true",
    }


@pytest.fixture
async def history(coordinator, nodes, eventually, muster, more_settings):
    """Runs `muster quarantine replay …` where one node was drained, a second waits, and a third is held."""

    def is_decided(name, state):
        case = coordinator.get(f"/api/v1/nodes/{name}/case")
        return case["state"] == state

    async with nodes(coordinator, *NODES) as them:
        for node in them.values():
            await node.report("gemm")
        await eventually(lambda: all(is_decided(name, "IN_SERVICE") for name in NODES))
        status, _ = coordinator.ask("POST", "/api/v1/nodes/good/hold", {"by": "ada", "reason": "mine"})
        assert status == 200
        for name, state in {"bad": "CORDONED", "worse": "HELD"}.items():
            await them[name].report("nvml", "FAIL", findings=(LOST,))
            await eventually(lambda name=name, state=state: is_decided(name, state))
        await them["good"].report("nvml", "FAIL", findings=(LOST,))
        await eventually(lambda: coordinator.get("/api/v1/nodes/good/case")["requirement"])
        await eventually(lambda: not any(node.kept for node in them.values()))  # a replay reads what is stored

        async def run(*arguments, **changed):
            env = {**coordinator.env, **more_settings, **changed}
            return await asyncio.to_thread(muster, "quarantine", "replay", *arguments, env=env)

        yield run


async def replayed(history, *arguments, **changed):
    """The rows of a replay as JSON: node, what was replayed, whether it was drained then, and whether that differs."""
    done = await history("--json", *arguments, **changed)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    rows = [
        (row["node"], row["replayed"] and row["replayed"]["kind"], row["then"] is not None, row["differs"])
        for row in answer["decisions"]
    ]
    return answer, rows


async def test_the_same_policy_decides_the_same(history, coordinator):
    """While the coordinator runs, and from the file alone when it does not."""
    expected = [("bad", "DRAINED", True, False), ("worse", "WAITS", False, False), ("good", "ON_HOLD", False, False)]
    answer, rows = await replayed(history)
    assert rows == expected
    assert (answer["nodes"], answer["drains"], answer["drains_then"], answer["most_out"]) == (4, 1, 1, 1)
    assert answer["decisions"][1]["replayed"]["because"].startswith("Not drained: budget of 1 of 4 reached")
    assert answer["decisions"][2]["replayed"]["because"] == "Hold by ada: mine"
    assert len(answer["not_known"]) == 3
    coordinator.end()
    assert (await replayed(history))[1] == expected


async def test_another_policy_and_another_budget_decide_otherwise(history, tmp_path):
    """What was drained then and would not have been differs, and the other way round."""
    policy = tmp_path / "new.toml"
    policy.write_text(LEAVE)
    answer, rows = await replayed(history, "--policy", str(policy))
    assert rows == [("bad", None, True, True)]
    assert answer["policy"] == str(policy)
    _, rows = await replayed(history, MUSTER_QUARANTINE__BUDGET='{"share": "50%", "per_minute": 6000}')
    assert rows[:2] == [("bad", "DRAINED", True, False), ("worse", "DRAINED", False, True)]


async def test_a_table_says_it_in_words(history):
    """With what a replay cannot know in front of it."""
    done = await history()
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "4 nodes under the policy in effect, as in mode enforce: 1 drain, at most 1 out at once." in lines[0]
    assert lines[1] == "What a replay cannot know:"
    assert "Silent nodes, comparisons with the fleet" in lines[2]
    bad = next(line for line in lines if "  bad  " in line)
    assert "drained (dry run)  drained" in bad
    assert "nvml.device_lost (policy row gpu-lost): " in bad


async def test_what_was_before_the_period_does_not_count(history, coordinator):
    """Neither the findings nor the drain of then."""
    at = coordinator.get("/api/v1/nodes/good/case")["required_since"]
    answer, rows = await replayed(history, "--since", at)
    assert (answer["since"], answer["drains_then"], rows) == (at, 0, [])


async def test_a_period_that_begins_before_the_history_is_said(history):
    """With the time, in UTC and local, from which on there is a history; without `--since` nothing was asked for."""
    done = await history("--since", "2020-01-31T12:00:00Z", TZ="Asia/Tokyo")
    first, *_ = done.stdout.splitlines()
    begins = (await replayed(history, "--since", "2020-01-31T12:00:00Z"))[0]["since"]
    both = instant_text(parse_instant(begins), ZoneInfo("Asia/Tokyo"))
    assert "JST" in both
    assert first == f"--since: the complete history begins at {both}; replayed from there."
    assert "complete history" not in (await history()).stdout


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (("--since", "2999-01-01T00:00:00Z"), "--since: 2999-01-01T00:00:00Z is in the future", 64),
        (("--since", "yesterday"), "--since: 'yesterday' is not a time; use ISO 8601 with a time zone", 64),
        (("--policy", "none.toml"), "--policy: cannot read none.toml: No such file or directory", 64),
        ((), "there is no database: run this on the coordinator's host", 69),
    ],
)
def test_what_cannot_be_replayed_is_refused(muster, tmp_path, arguments, said, code):
    """In one line that says what to do; no database is made by asking."""
    done = muster("quarantine", "replay", *arguments, env={"MUSTER_DATA_DIR": str(tmp_path / "data")})
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_a_wrong_policy_is_refused_with_row_and_code(muster, tmp_path):
    """As the coordinator would refuse it."""
    policy = tmp_path / "new.toml"
    policy.write_text('[[row]]\nname = "hot"\ncodes = ["nvml.hot"]\nreason = "x"')
    done = muster("quarantine", "replay", "--policy", str(policy), env={"MUSTER_DATA_DIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (64, "")
    assert "new.toml, row hot: unknown finding code 'nvml.hot'; did you mean 'nvml.too_hot'?" in done.stderr
