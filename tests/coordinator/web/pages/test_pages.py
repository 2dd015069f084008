"""The pages over HTTP: their headers, links and errors, in every state of a fleet."""

import asyncio
import gzip
import hashlib
import re
from importlib import resources
from pathlib import Path

import pytest
from tests.cases import cases
from tests.coordinator.views.pages.fleet_rows import NOW, facts, found, row
from tests.coordinator.web.pages.page_fleet import LOST_GPU, SLOW, finding, place
from tests.coordinator.web.pages.page_html import MARKUP, WILD, Links, require_text_only
from yarl import URL

from muster.model import Health, MachineType, MachineTypeSource, Severity, Topology
from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.model.quarantine_events import HoldRequested
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.web.guard import Access
from muster_coordinator.web.pages.page_routes import rendered
from muster_coordinator.web.pages.response import POLICY
from muster_coordinator.web.pages.shared_page import SharedPage
from muster_coordinator.web.pages.static_files import static_files
from muster_coordinator.web.sessions import Right

STATIC = Path(str(resources.files("muster_coordinator.web.pages"))) / "static"
VENDOR = STATIC / "vendor"


async def test_every_page_has_the_strict_policy_and_only_relative_links(pages):
    """Nothing stands in a page that the policy would forbid; a proxy may serve it below any prefix."""
    await pages.fleet.join("n1", "n2")
    await pages.fleet.report("n1", SLOW)
    for path in ("/", "/nodes", "/nodes?select=n1", "/nodes/n1", "/nodes/n3", "/no/such/page"):
        response, text = await pages.ask(path)
        assert response.headers["Content-Security-Policy"] == POLICY
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cache-Control"] == "no-store"
        assert response.content_type == "text/html"
        found = Links(text)
        assert found.inline == []
        assert [link for link in found.links if re.match(r"/|[a-z]+:", link)] == []


async def test_all_links_of_the_pages_lead_somewhere(pages):
    """To pages, to files, or to the API."""
    await pages.fleet.join("n1", "n2")
    await pages.fleet.report("n1", SLOW)
    for path in ("/", "/nodes", "/nodes/n1"):
        for link in {link for link in Links(await pages.get(path)).links if not link.startswith("#")}:
            async with pages.session.get(URL(pages.fleet.url + path).join(URL(link))) as response:
                assert response.status == 200, (path, link)


@pytest.mark.parametrize("nodes", [0, 1, 16])
async def test_fleets_of_any_size(pages, nodes):
    """Each page of each fleet says what there is, or why there is nothing."""
    names = [f"n{number}" for number in range(nodes)]
    await pages.fleet.join(*names)
    fleet, table = await pages.get("/"), await pages.get("/nodes")
    assert [name for name in names if f'href="nodes/{name}"' not in fleet or f"nodes/{name}" not in table] == []
    if nodes:
        assert f"All {nodes} node" in fleet
        assert "Nothing is wrong" in fleet
        assert "gemm" in await pages.get("/nodes/n0")
    else:
        assert "No nodes yet" in fleet
        assert "No node has reported yet" in table
    for path in ("/", "/nodes", "/sweeps", "/quarantine", "/events", "/acceptance", *(["/nodes/n0"] if nodes else [])):
        assert not re.search(r"\b(nan|inf|(?<!of )1 nodes|(?!1\b)\d+ node)\b", Links(await pages.get(path)).text), path


async def test_nodes_without_a_place_are_on_the_map(pages):
    """By themselves."""
    await pages.fleet.join("n1", topology=None)
    assert "No place known" in (text := await pages.get("/"))
    assert 'href="nodes/n1"' in text
    assert "none known" in await pages.get("/nodes?group=rack")


async def test_a_lost_node(pages):
    """It is silent on every page, and no page calls it healthy."""
    await pages.fleet.join("n1", "n2")
    await pages.fleet.leave("n1")
    await pages.fleet.pass_time(300)
    fleet = await pages.get("/")
    assert "<title>n1: silent</title>" in fleet
    assert "The heartbeat has stopped" in fleet
    assert "lost" in fleet
    node = await pages.get("/nodes/n1")
    assert "It stopped to report without a fault" in node
    assert '"#healthy"' not in node


async def test_a_drained_node_and_a_held_one(pages):
    """Why, what must happen next, and that a person is needed."""
    await pages.fleet.join(*(f"n{number}" for number in range(10)))
    for node in ("n1", "n2"):
        await pages.fleet.report(node, LOST_GPU)
        await pages.fleet.report(node, LOST_GPU)
    await pages.fleet.pass_time(5)
    drained, held = await pages.get("/nodes/n1"), await pages.get("/nodes/n2")
    assert "CORDONED" in drained
    assert "Before it is back in service" in drained
    assert "Reboot the node" in drained
    assert "XID 79 GPU5" in drained
    assert "GPU-n1-0005" in drained
    assert "Not drained: budget of 1 of 10 reached" in held
    await pages.fleet.pass_time(7195)
    fleet = await pages.get("/")
    assert '<td class="right">2.0</td><td class="right">0.83%</td>' in fleet  # two of 240 node-hours
    assert '<span class="kind">held</span>' in fleet
    assert "<title>n1: failed, CORDONED</title>" in fleet
    assert "Nothing: no health and no service state has changed" in fleet


class TestInADryRun:
    """Nothing is really drained."""

    @pytest.fixture
    def settings(self):
        return {"mode": "dry-run"}

    async def test_every_page_says_so(self, pages):
        """On the node and on the fleet."""
        await pages.fleet.join(*(f"n{number}" for number in range(10)))
        await pages.fleet.report("n1", LOST_GPU)
        await pages.fleet.report("n1", LOST_GPU)
        assert "n1: failed, CORDONED (dry run)" in (text := await pages.get("/"))
        assert "mode is dry-run" in text
        assert "CORDONED (dry run)" in await pages.get("/nodes/n1")


class TestWithoutTheBroker:
    """The coordinator hears no node."""

    @pytest.fixture
    def settings(self):
        return {"is_connected": False}

    async def test_nothing_is_green(self, pages):
        """The page says that its numbers are old."""
        await pages.fleet.join("n1", "n2")
        text = await pages.get("/")
        assert "were usable when last heard" in text
        assert "Not connected to the broker" in text
        assert 'href="#healthy"' not in text
        for path in ("/nodes", "/nodes/n1"):
            text = await pages.get(path)
            assert "this is the last known state" in text
            assert 'href="#healthy"' not in text


async def test_a_node_that_has_left_keeps_its_story(pages):
    """After it was forgotten, too."""
    await pages.fleet.join("n1", "n2")
    await pages.fleet.leave("n1")
    request = {"by": "ann", "reason": "sold"}
    session, url = pages.session, pages.fleet.url
    async with session.post(
        f"{url}/api/v1/nodes/n1/forget", json=request, headers={"Authorization": "Bearer any"}
    ) as response:
        assert response.status == 200
    text = await pages.get("/nodes/n1")
    assert "was forgotten" in text
    assert "forgotten by ann: sold" in text


async def test_what_people_asked_for_is_among_the_changes(pages):
    """With their name and reason."""
    await pages.fleet.join("n1")
    await pages.fleet.feed(HoldRequested(node="n1", by="ann", reason="replacing a fan"))
    text = Links(await pages.get("/")).text
    assert "hold: replacing a fan" in text
    assert "(by ann)" in text


async def test_a_filter_is_in_the_url(pages):
    """The table has the nodes of the selection and the form its text; a wrong one is explained."""
    await pages.fleet.join("n1", "n2")
    text = await pages.get("/nodes?select=name=n2")
    assert 'value="name=n2"' in text
    assert "nodes/n2" in text
    assert "nodes/n1" not in text
    response, text = await pages.ask("/nodes?select=rock=r1")
    assert response.status == 422
    assert "rock" in Links(text).text
    assert 'aria-invalid="true"' in text
    assert "No node fits this selection" in await pages.get("/nodes?select=health=FAILED")
    assert "nodes/n1" in await pages.get("/nodes?select=")  # the form without a text


async def test_text_of_nodes_shows_as_text(pages):
    """Wherever it stands: places, models, labels, findings, evidence, reasons, errors, people's reasons."""
    said = MachineType(name=WILD, source=MachineTypeSource.CLOUD, said_by=WILD)
    where = {"labels": {}, "machine_type": WILD, "machine_types": (said,), "waiting_references": (WILD,)}
    where |= {"software": {"driver": WILD}}
    await pages.fleet.join("n1", "n2", topology=lambda _: Topology(block=WILD, rack=WILD, leaf=WILD), **where)
    evidence = {"value": WILD, "bound": 1, "source": WILD, WILD: WILD}
    bad = finding(summary=WILD, severity=Severity.ERROR, evidence=evidence)
    await pages.fleet.report("n1", bad)
    await pages.fleet.report("n1", bad)
    await pages.fleet.feed(HoldRequested(node="n2", by=MARKUP, reason=MARKUP))
    for path in ("/", "/nodes", "/nodes/n1", "/nodes/n2"):
        require_text_only(await pages.get(path))
    for path in ("/nodes?select=%3Cscript%3E", "/%3Cscript%3E", "/nodes/%3Cscript%3E"):
        _, page = await pages.ask(path)
        assert "<script>" not in page


async def test_a_page_says_what_the_machine_is_and_what_is_missing_in_its_setup(pages):
    """With the source; a finding about the setup has no run to look at."""
    said = MachineType(name="PowerEdge XE9680", source=MachineTypeSource.DMI, said_by="product_name")
    await pages.fleet.join("n1", machine_type=said.name, machine_types=(said,))
    await pages.fleet.join("n2", waiting_references=("collective busbw_gbps (a4-highgpu-8g)",))
    text = await pages.get("/nodes/n1")
    assert "PowerEdge XE9680 (firmware, product_name)" in text
    assert "node.machine_type_unknown" not in text
    text = await pages.get("/nodes/n2")
    assert "collective busbw_gbps (a4-highgpu-8g); set agent.machine_type on the node" in text
    assert "by the inventory of the node (<code>node.machine_type_unknown</code>)" in text
    assert "api/v1/runs/" not in Links(text).text


@cases("path", ["/nodes/n9", "/nothing", "/nodes?rock=1", "/nodes?page=0", "/?x=1"])
async def test_errors_are_pages_for_browsers_only(pages, path):
    """Programs get the problem that they know."""
    response, text = await pages.ask(path)
    assert response.status in (400, 404)
    assert "<h1>" in text
    response, text = await pages.ask(path, Accept="*/*")
    assert response.content_type == "application/problem+json"


async def test_errors_of_the_api_stay_problems(pages):
    """A browser that looks at the API sees what a program sees."""
    response, _ = await pages.ask("/api/v1/nodes/n9")
    assert response.content_type == "application/problem+json"


class TestWithATokenFile:
    """Pages need the right to read."""

    @pytest.fixture
    def access(self):
        return Access("a-secret", Right.PROBE, "of http.token_file")

    @cases(
        "path, next",
        [("/", ""), ("/nodes?select=rack%3Dr1", "nodes?select=rack%3Dr1"), ("/nodes/n1", "nodes/n1"), ("/no", "no")],
    )
    async def test_a_browser_without_it_is_led_to_the_login(self, pages, path, next):
        """From which it comes back to where it was."""
        response, text = await pages.ask(path)
        assert response.url.path == "/login"
        assert response.history[0].status == 303
        assert response.history[0].headers["Location"].startswith((".", "../"))
        assert response.url.query == {"next": next}
        assert 'name="token"' in text
        assert "http.token_file" in text

    async def test_a_program_without_it_is_refused(self, pages):
        """It may not follow to a form."""
        response, _ = await pages.ask("/nodes", Accept="application/json")
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")

    async def test_with_the_token_the_pages_are_there(self, pages):
        """A proxy may add it."""
        response, _ = await pages.ask("/", Authorization="Bearer a-secret")
        assert response.status == 200


class TestStaticFiles:
    """The files that pages load."""

    async def test_a_file_with_its_digest_is_kept(self, pages):
        """Its content never changes under this URL."""
        (path,) = [link for link in Links(await pages.get("/")).links if ".css" in link]
        response, text = await pages.ask("/" + path.removeprefix("./"))
        assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert response.content_type == "text/css"
        assert "prefers-color-scheme" in text

    async def test_a_file_without_it_is_asked_for_again(self, pages):
        """304 as long as it is the same."""
        response, _ = await pages.ask("/static/muster.css")
        assert response.headers["Cache-Control"] == "no-cache"
        again, text = await pages.ask("/static/muster.css", **{"If-None-Match": response.headers["ETag"]})
        assert (again.status, text) == (304, "")

    def test_scripts_load_others_with_their_digests(self):
        """So a browser asks for none again, and loads none of another version."""
        digests = {file.name: file.digest for file in static_files()}
        own = [file for file in static_files() if file.name.endswith(".js") and not file.name.startswith("vendor/")]
        named = [name for file in own for name in re.findall(r'([a-z_]+\.js(?:\?[^"]*)?)"', file.body.decode())]
        assert len(named) > 15
        assert named == [f"{name}?v={digests[name]}" for name in (each.partition("?")[0] for each in named)]

    @cases("path", ["/static/", "/static/nothing.css", "/static/../templates/base.html.jinja", "/static/%2e%2e/x"])
    async def test_nothing_else_is_served(self, pages, path):
        """Each file has a route of its own."""
        response, _ = await pages.ask(path)
        assert response.status == 404

    def test_each_has_a_content_type(self):
        """A file of a new kind needs one, or it is not served."""
        served = {file.name: file.content_type for file in static_files()}
        assert {file.name for file in STATIC.iterdir() if file.is_file()} <= served.keys()
        assert {name.rpartition(".")[2]: kind for name, kind in served.items()} == {
            "css": "text/css",
            "js": "text/javascript",
            "svg": "image/svg+xml",
        }

    def test_files_of_others_are_what_was_published(self):
        """Each has the digest that stands beside it, and comes with its licence."""
        digests = dict(
            re.findall(r"^\| `([\w.]+)` \| `([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), re.MULTILINE)
        )
        found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in VENDOR.iterdir()}
        del found["README.md"]
        assert found == digests
        assert "Permission is hereby granted, free of charge" in (VENDOR / "uPlot.LICENSE").read_text()


async def test_pages_are_compressed(pages):
    """The page of 10,000 nodes has 1.4 MB, and 85 KB compressed."""
    await pages.fleet.join("n1")
    response, _ = await pages.ask("/")
    assert response.headers["Content-Encoding"] in ("gzip", "deflate")


def test_the_page_of_10_000_nodes_stays_small():
    """With 1,000 of them in trouble: less than 100 KB compressed."""
    bad = {"health": Health.FAILED, "findings": (found(),)}
    rows = [row(f"gpu-{n:05}", place=dict(place(n)), **(bad if n % 10 == 3 else {})) for n in range(10_000)]
    held = tuple(CaseView(node=f"n{n}", since=NOW, rounds=2, held_because="Not drained: budget") for n in range(20))
    story = tuple(
        StoryEntry(id=f"e{n}", at=NOW, node=f"gpu-{n:05}", kind="health", text=f"to FAILED: {n}") for n in range(1000)
    )
    page = rendered(facts(*rows, held=held, story=story))
    assert page.count("<a href=") > 10_000
    assert len(gzip.compress(page.encode(), 6)) < 100_000


async def test_a_page_is_made_once_for_all_who_wait():
    """Nobody gets a page that was begun before they asked, and after an error the next one is made."""
    begun: list[int] = []
    ends: asyncio.Queue[str] = asyncio.Queue()

    async def make():
        begun.append(len(begun))
        outcome = await ends.get()
        if outcome == "fails":
            raise ValueError
        return outcome

    page = SharedPage(make)
    first = asyncio.create_task(page.get())
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(page.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for outcome in ("one", "fails", "two"):
        ends.put_nowait(outcome)
    assert await first == "one"
    assert sorted(map(str, await asyncio.gather(*waiting, return_exceptions=True))) == ["", "two", "two"]
    assert begun == [0, 1, 2]


@pytest.mark.looptime
async def test_a_page_that_rests_takes_a_bounded_share_of_the_time():
    """It is made at once after a quiet time, and then rests ten times as long as it took."""
    loop = asyncio.get_running_loop()
    begun = []

    async def make():
        begun.append(loop.time())
        await asyncio.sleep(0.2)
        return "made"

    page = SharedPage(make, rest=10.0)
    began = loop.time()
    for _ in range(3):
        await page.get()
    await asyncio.sleep(60)
    await page.get()
    assert [moment - began for moment in begun] == pytest.approx([0.0, 2.2, 4.4, 64.6])
