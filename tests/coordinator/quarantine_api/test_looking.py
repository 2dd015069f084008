"""What the API tells about service states: who is out and why, what was done about it, and how much room is left."""

import asyncio
import json
from datetime import datetime, timedelta

from muster.transition import ActionOutcome, Effect
from muster_coordinator.model.events import Ticked

NODES = ("n1", "n2", "n3", "n4")
ROOT = "/api/v1/quarantine"


def nodes_of(page):
    return [item["node"] for item in page["items"]]


async def told_cases(listener):
    """The cases of the event stream, in order."""
    while told := await listener.take():
        for event in told.decode().split("\n\n"):
            if "\nevent: case\n" in event:
                yield json.loads(event.split("data: ")[1])


async def next_case(cases, is_so):
    """The next case for which `is_so` holds."""
    async with asyncio.timeout(5):
        return await anext(case async for case in cases if is_so(case))


async def test_a_fleet_that_is_well_is_not_listed(api):
    """All nodes are in service, and the budget counts them."""
    assert await api.get(ROOT) == {"items": [], "next_cursor": None}
    budget = await api.until(f"{ROOT}/budget", lambda answer: answer["actors"])
    assert budget["actors"] == [{"name": "slurm", "summary": "cluster c", "can_cordon": True, "problem": None}]
    view = budget["quarantine"]
    assert (view["mode"], view["nodes"], view["away"], view["limit"]) == ("enforce", 4, 0, 2)
    case = await api.get("/api/v1/nodes/n1/case")
    assert (case["state"], case["domain"], case["requirement"]) == ("IN_SERVICE", "r1", None)


async def test_a_bad_node_is_listed_with_the_reason_and_what_was_done(api):
    """In the list, in its case, in the budget, in the history and in its story."""
    await api.report("n2", "nvml.device_lost")
    (listed,) = await api.until_out("n2")
    assert (listed["requirement"]["row"], listed["requirement"]["codes"]) == ("gpu-lost", ["nvml.device_lost"])
    assert (listed["outcomes"]["slurm"]["effect"], listed["outcomes"]["slurm"]["detail"]) == ("DONE", "drained")
    assert await api.get("/api/v1/nodes/n2/case") == listed
    view = (await api.get(f"{ROOT}/budget"))["quarantine"]
    assert (view["away"], view["domains"]) == (1, [{"name": "r1", "nodes": 4, "away": 1, "limit": 4}])
    (latest, *_) = (await api.until(f"{ROOT}/history?node=n2", lambda page: page["items"][0]["told"]))["items"]
    assert (latest["transition"]["id"], latest["transition"]["after"]) == (listed["transition"], "CORDONED")
    story = (await api.get("/api/v1/nodes/n2/story"))["items"]
    assert [entry["kind"] for entry in reversed(story)][-5:] == ["found", "health", "policy", "service", "action"]


async def test_an_action_that_fails_is_seen(api):
    """With how often it was tried and when it is tried again."""
    api.scheduler.outcome = ActionOutcome(effect=Effect.FAILED, detail="no such node", retry_after_s=600.0)
    await api.report("n1", "nvml.device_lost")
    (listed,) = await api.until_out("n1")
    outcome = listed["outcomes"]["slurm"]
    assert (outcome["effect"], outcome["detail"], outcome["tries"]) == ("FAILED", "no such node", 1)
    assert outcome["next_try"] > outcome["at"]
    metrics = await api.text("/metrics")
    assert 'muster_actions_failing{actor="slurm"} 1.0' in metrics


async def test_a_node_in_service_with_an_action_that_failed_is_listed(api):
    """Somebody was not told that it is back."""
    api.scheduler.outcome = ActionOutcome(effect=Effect.FAILED, detail="HTTP 500", only_tells=True)
    await api.report("n1", "nvml.device_lost")
    await api.until_out("n1")
    await api.post("/api/v1/nodes/n1/release", reason="repaired", by="ada", untested=True)
    (listed,) = (await api.until(ROOT, lambda page: page["items"] and page["items"][0]["outcomes"]))["items"]
    assert (listed["state"], listed["outcomes"]["slurm"]["effect"]) == ("IN_SERVICE", "FAILED")
    assert (await api.get(f"{ROOT}/budget"))["quarantine"]["away"] == 0
    api.scheduler.outcome = ActionOutcome(effect=Effect.DONE, detail="told")
    await api.until(ROOT, lambda page: page["items"] == [])


async def test_alarms_that_stand_are_seen(api):
    """In the budget and as a figure for each kind, until they are over."""
    for node in ("n1", "n2", "n3"):
        await api.report(node, "nvml.device_lost")
    await api.until_out("n1", "n2")
    await api.feed(Ticked())
    (alarm,) = (await api.get(f"{ROOT}/budget"))["quarantine"]["alarms"]
    assert (alarm["kind"], alarm["subject"], alarm["ended_at"]) == ("BUDGET", "fleet", None)
    assert alarm["text"] == "1 faulty node not drained: budget of 2 of 4 reached"
    figures = [line for line in (await api.text("/metrics")).splitlines() if "quarantine_alarms{" in line]
    assert figures == [
        'muster_quarantine_alarms{kind="MASS_EVENT"} 0.0',
        'muster_quarantine_alarms{kind="BUDGET"} 1.0',
        'muster_quarantine_alarms{kind="ACTION"} 0.0',
        'muster_quarantine_alarms{kind="PERSON"} 0.0',
    ]


async def test_the_figures_tell_of_the_quarantine(api):
    """Who is away and may be, what has changed, and whether the actors work."""
    await api.until(f"{ROOT}/budget", lambda answer: answer["actors"])
    for node in ("n1", "n2", "n3"):
        await api.report(node, "nvml.device_lost")
    await api.until_out("n1", "n2")
    lines = (await api.text("/metrics")).splitlines()
    told = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}
    quarantine = {name: told[f"muster_quarantine_{name}"] for name in ("limit", "away", "held", "frozen")}
    assert quarantine == {"limit": 2, "away": 2, "held": 1, "frozen": 0}
    assert told['muster_service_changes_total{service="CORDONED"}'] == 2
    assert told['muster_service_changes_total{service="IN_SERVICE"}'] == 4
    assert told['muster_actor_works{actor="slurm"}'] == 1
    assert told['muster_actions_failing{actor="slurm"}'] == 0


async def test_who_has_to_wait_is_held_and_says_why(api):
    """The budget of half the fleet is used up by two."""
    for node in ("n1", "n2", "n3"):
        await api.report(node, "nvml.device_lost")
    listed = await api.until_out("n1", "n2")
    assert (listed[2]["node"], listed[2]["state"]) == ("n3", "HELD")
    assert listed[2]["held_because"] == "Not drained: budget of 2 of 4 reached"
    assert (await api.get(f"{ROOT}/budget"))["quarantine"]["held"] == ["n3"]


async def test_a_node_that_is_out_says_when_it_may_come_back(api):
    """Not before ten minutes have passed, after two rounds of tests."""
    await api.report("n1", "nvml.device_lost")
    (listed,) = await api.until_out("n1")
    assert (listed["rounds"], listed["needs_person"]) == (2, "")
    since, retest_at = (datetime.fromisoformat(listed[name]) for name in ("since", "retest_at"))
    assert retest_at - since == timedelta(minutes=10)


async def test_a_silent_node_is_listed(api):
    """It counts as away, and who asks why so many are must find it."""
    await api.lose("n3")
    (listed,) = (await api.get(ROOT))["items"]
    assert (listed["node"], listed["state"], listed["lost_at"] is None) == ("n3", "IN_SERVICE", False)
    assert (await api.get(f"{ROOT}/budget"))["quarantine"]["away"] == 1


async def test_the_event_stream_tells_of_cases(api):
    """What somebody decides, what the policy asks for, and what came of it at an actor, each as the API serves it."""
    with api.shell.stream.listen(None, lambda: None) as listener:
        cases = told_cases(listener)
        await api.post("/api/v1/nodes/n1/hold", by="ann", reason="a fan")
        held = await next_case(cases, lambda case: case["hold"])
        assert held == await api.get("/api/v1/nodes/n1/case")
        await api.report("n2", "nvml.device_lost")
        accused = await next_case(cases, lambda case: case["requirement"])
        assert (accused["node"], accused["state"], accused["outcomes"]) == ("n2", "CORDONED", {})
        done = await next_case(cases, lambda case: case["state"] == "CORDONED" and case["outcomes"])
        assert done == await api.get("/api/v1/nodes/n2/case")


async def test_lists_come_in_pages(api):
    """Cases by node, transitions with the latest first."""
    for node in ("n1", "n2"):
        await api.report(node, "nvml.device_lost")
    await api.until_out("n1", "n2")
    first = await api.get(f"{ROOT}?limit=1")
    second = await api.get(f"{ROOT}?limit=1&cursor={first['next_cursor']}")
    assert (nodes_of(first), nodes_of(second), second["next_cursor"]) == (["n1"], ["n2"], None)
    seen, cursor = [], ""
    while cursor is not None:
        page = await api.get(f"{ROOT}/history?limit=4{cursor and '&cursor=' + cursor}")
        seen += [(it["transition"]["node"], it["transition"]["after"]) for it in page["items"]]
        cursor = page["next_cursor"]
    assert seen[:2] == [("n2", "CORDONED"), ("n1", "CORDONED")]
    assert sorted(seen[2:]) == [(node, "IN_SERVICE") for node in NODES]
    for path in (ROOT, f"{ROOT}/history"):
        status, problem = await api.ask("GET", f"{path}?cursor=nonsense")
        assert (status, "cursor" in problem["detail"]) == (422, True)
