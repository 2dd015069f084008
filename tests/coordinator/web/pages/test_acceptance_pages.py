"""The pages about acceptances."""

from tests.coordinator.web.acceptances import LOST, acceptance
from tests.coordinator.web.pages.page_html import MARKUP, Links, require_text_only

from muster.acceptance import GangDecision, NodeConclusion, report, step_report
from muster.model import Inventory, Verdict


async def test_the_list_says_why_it_is_empty(pages):
    """Before the first report, and for a filter that nothing fits."""
    assert "No report has been sent yet." in (text := await pages.get("/acceptance"))
    assert "muster check run --suite full --send" in text
    await pages.fleet.accept(acceptance("n1"))
    assert "No acceptance fits this filter." in await pages.get("/acceptance?node=n2&verdict=&suite=")


async def test_the_list_filters_and_leads_on(pages, monkeypatch):
    """The filter is in the links to the next page; nodes that the coordinator knows are links."""
    monkeypatch.setattr("muster_coordinator.web.pages.acceptance_pages.PAGE_SIZE", 1)
    await pages.fleet.join("n1")
    ids = [
        await pages.fleet.accept(acceptance("n1", "n9", failed={"n1", "n9"}, started_at=1e9 + number))
        for number in range(2)
    ]
    await pages.fleet.accept(acceptance("n1"))
    text = await pages.get("/acceptance?verdict=FAIL&suite=full")
    assert [each in text for each in ids] == [False, True]
    assert "XID 79 GPU3: GPU has fallen off the bus" in text
    (following,) = [link for link in Links(text).links if "cursor=" in link]
    assert following.startswith("./acceptance?verdict=FAIL&suite=full&cursor=")
    assert "There are no earlier acceptances." not in await pages.get(following.removeprefix("."))
    assert ("./nodes/n1" in Links(text).links, "./nodes/n9" in Links(text).links) == (True, False)


async def test_a_report_shows_the_worst_first(pages):
    """What it came to, the failed node before the others, and what to do."""
    report_id = await pages.fleet.accept(acceptance("n1", "n2", "n3", failed={"n2"}, gpus=0))
    text = await pages.get(f"/acceptance/{report_id}")
    assert text.index("No GPU was tested on 3 nodes") < text.index(">n2<") < text.index(">n1<") < text.index(">n3<")
    assert "reboot the node" in text
    assert "sent by job 17" in text


async def test_a_preflight_shows_what_was_decided(pages):
    """The rejected node is the cause, and the partner of its failed pair has not failed."""
    told = acceptance("n1", "n2", failed={"n1", "n2"})
    steps = [
        step_report("PAIRS", step.check, step.summary, [run.model_copy(update={"group": "g"}) for run in step.runs])
        for step in told.steps
    ]
    conclusions = [
        NodeConclusion(node="n1", decision=GangDecision.REJECTED, verdict=Verdict.FAIL, reason="too slow"),
        NodeConclusion(node="n2", decision=GangDecision.GO, verdict=Verdict.PASS, reason=""),
    ]
    nodes = {node.name: node.inventory for node in told.nodes}
    made = report("preflight", steps, nodes, told.started_at, 1.0, conclusions=conclusions)
    text = await pages.get(f"/acceptance/{await pages.fleet.accept(made)}")
    assert "<li>n1: too slow</li>" in text
    assert "<td>REJECTED: too slow</td>" in text
    assert "<td>GO</td>" in text
    assert ", 1 failed" in text


async def test_a_long_report_stays_short_on_the_page(pages):
    """A suite that was repeated for hours is one line for each check, with how often it ran."""
    once = acceptance("n1")
    again = report("burn-in", once.steps * 300, {"n1": Inventory()}, once.started_at, 28_800.0)
    text = await pages.get(f"/acceptance/{await pages.fleet.accept(again)}")
    assert text.count(">300<") == 2
    assert "280 more runs" in text
    assert len(text) < 100_000


async def test_a_table_of_a_check_keeps_its_columns(pages):
    """Its lines and spaces are what makes it a table."""
    table = "size  GB/s\n8     0.1"
    report_id = await pages.fleet.accept(acceptance("n1", facts={"table": table}))
    assert f"<pre>{table}</pre>" in await pages.get(f"/acceptance/{report_id}")


async def test_a_node_leads_to_its_acceptances(pages):
    """The latest three, and all of them behind a link."""
    await pages.fleet.join("n1", "n2")
    ids = [await pages.fleet.accept(acceptance("n1", suite=f"suite{number}")) for number in range(4)]
    text = await pages.get("/nodes/n1")
    assert sum(f"acceptance/{each}" in text for each in ids) == 3
    assert "acceptance?node=n1" in text
    assert "Acceptances" not in await pages.get("/nodes/n2")


async def test_markup_in_a_report_stays_text(pages):
    """In its suite, its sections, its findings, its tables, and the name of its sender."""
    finding = LOST.model_copy(update={"summary": MARKUP})
    curve = {"title": MARKUP, "x_label": MARKUP, "y_label": MARKUP, "x": [1, 2], "y": [1, 2]}
    wild = acceptance("n1", suite=MARKUP, failed={"n1"}, finding=finding, facts={"table": MARKUP, "curves": [curve]})
    steps = [step_report(MARKUP, step.check, MARKUP, step.runs) for step in wild.steps]
    inventory = Inventory(machine_type=MARKUP, software={MARKUP: MARKUP})
    made = report(MARKUP, steps, {"n1": inventory}, wild.started_at, 1.0)
    report_id = await pages.fleet.accept(made, by=MARKUP)
    for path in ("/acceptance", f"/acceptance/{report_id}"):
        require_text_only(await pages.get(path))


async def test_an_unknown_acceptance_is_said(pages):
    """As a page, with where to look."""
    response, text = await pages.ask("/acceptance/nothing")
    assert response.status == 404
    assert "unknown acceptance" in text
