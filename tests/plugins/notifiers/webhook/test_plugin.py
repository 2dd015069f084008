"""The plugin `webhook` with real servers: what they get, what comes of their answers, and what nobody gets to see."""

import asyncio
import logging
import socket
import subprocess
import sys

import pytest
from aiohttp import web
from tests.plugins.notifiers.webhook.servers import BACK, OUT, SECRET, TOKEN, generic, serving

from muster.transition import Effect
from muster_plugins.notifiers.webhook import delivery

URL_SECRET = "B00/X-channel-key-that-nobody-shall-read"


async def test_every_format_is_posted(plugin, server, tmp_path):
    """Each target gets the transition in its own format at its own path; one outcome covers all."""
    told = plugin(
        ops=generic(tmp_path, f"{server.url}/ops"),
        chat={"url": f"{server.url}/chat", "format": "slack"},
        pager={"url": f"{server.url}/pager", "format": "pagerduty", "routing_key_file": str(tmp_path / "key")},
        alerts={"url": f"{server.url}/alerts", "format": "alertmanager"},
        muster_url="https://muster.example/",
    )
    outcome = await told.tell()
    assert (outcome.effect, outcome.detail) == (
        Effect.DONE,
        "ops: notified; chat: notified; pager: notified; alerts: notified",
    )
    ((ops,), (chat,), (pager,), (alerts,)) = map(server.bodies, ("/ops", "/chat", "/pager", "/alerts"))
    assert (ops["fleet"], ops["node"], ops["after"]) == ("prod", "gpu-0042", "CORDONED")
    assert "<https://muster.example/nodes/gpu-0042|why>" in chat["blocks"][1]["elements"][0]["text"]
    assert (pager["routing_key"], pager["event_action"]) == ("R" * 32, "trigger")
    assert alerts[0]["labels"]["node"] == "gpu-0042"
    await told.tell(BACK)
    assert server.bodies("/pager")[1]["event_action"] == "resolve"


async def test_headers(plugin, server, tmp_path):
    """JSON, with a key by which a target knows what it has had, and a token where one is set."""
    await plugin(ops=generic(tmp_path, f"{server.url}/ops", token_file=str(tmp_path / "token"))).tell()
    ((headers, _),) = server.posts["/ops"]
    assert headers["Content-Type"] == "application/json"
    assert headers["Idempotency-Key"] == headers["webhook-id"] == "prod:t1:1700000000000:ops"
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["User-Agent"].startswith("muster/")


async def test_a_dry_run_tells_nobody(plugin, server, tmp_path):
    """The outcome says who would be notified of what."""
    told = plugin(ops=generic(tmp_path, f"{server.url}/ops"), chat={"url": f"{server.url}/chat", "format": "slack"})
    outcome = await told.tell(OUT.model_copy(update={"dry_run": True}))
    assert outcome.effect is Effect.WOULD
    expected = "would notify ops (generic), chat (slack): gpu-0042 drained: fell off the bus"
    assert (outcome.detail, outcome.only_tells) == (expected, True)
    assert server.posts == {}


async def test_a_state_that_nobody_wants_to_know(plugin, server, tmp_path):
    """The plugin does nothing, as if it had no targets."""
    told = plugin(ops=generic(tmp_path, f"{server.url}/ops", states=["HELD"]))
    assert await told.tell() is None
    assert await plugin().tell() is None
    assert server.posts == {}


async def test_only_who_has_not_been_told_is_told_again(plugin, server, tmp_path):
    """If one target fails, the others are not notified twice."""
    told = plugin(ops=generic(tmp_path, f"{server.url}/ops"), chat={"url": f"{server.url}/chat", "format": "slack"})
    server.answers["/chat"] = [web.Response(status=503, text="not now")]
    first = await told.tell()
    assert (first.effect, first.detail) == (Effect.FAILED, "ops: notified; chat: HTTP 503: not now")
    again = [await told.tell() for _ in range(2)]
    assert [(each.effect, each.detail) for each in again] == [(Effect.DONE, "ops: notified; chat: notified")] * 2
    assert {path: len(posts) for path, posts in server.posts.items()} == {"/ops": 1, "/chat": 2}
    keys = {headers["Idempotency-Key"] for headers, _ in server.posts["/chat"]}
    assert keys == {"prod:t1:1700000000000:chat"}


async def test_who_wants_to_be_left_alone_is(plugin, server, monkeypatch):
    """The target gets no post for that time, while another one that failed is retried."""
    now = 100.0
    monkeypatch.setattr(delivery, "monotonic", lambda: now)
    chat, pager = ({"url": f"{server.url}/{name}", "format": "slack"} for name in ("chat", "pager"))
    told = plugin(chat=chat, pager=pager)
    server.answers["/chat"] = [web.Response(status=429, headers={"Retry-After": "7"}, text="slow down")]
    server.answers["/pager"] = [web.Response(status=500)]
    assert (await told.tell()).retry_after_s == 0
    now += 2.0
    second = await told.tell()
    assert (second.effect, second.detail) == (Effect.FAILED, "chat: HTTP 429: slow down; pager: notified")
    assert second.retry_after_s == 5
    now += 5.0
    assert (await told.tell()).effect is Effect.DONE
    assert {path: len(posts) for path, posts in server.posts.items()} == {"/chat": 2, "/pager": 2}


async def test_what_is_remembered_is_bounded(plugin, server, monkeypatch):
    """The oldest is forgotten first."""
    monkeypatch.setattr(delivery, "MOST_REMEMBERED", 2)
    told = plugin(chat={"url": f"{server.url}/chat", "format": "slack"})
    for transition in ("a", "b", "c", "b", "c", "a"):
        await told.tell(OUT.model_copy(update={"id": transition}))
    keys = [headers["Idempotency-Key"].split(":")[1] for headers, _ in server.posts["/chat"]]
    assert keys == ["a", "b", "c", "a"]


async def test_what_is_still_to_be_told_to_one_target_is_not_forgotten_for_the_other(plugin, server, monkeypatch):
    """The notices that were not used for longest are dropped first, even if they are newer."""
    now = 100.0
    monkeypatch.setattr(delivery, "monotonic", lambda: now)
    monkeypatch.setattr(delivery, "MOST_REMEMBERED", 4)
    told = plugin(**{name: {"url": f"{server.url}/{name}", "format": "slack"} for name in ("chat", "refusing")})
    server.answers["/refusing"] = [web.Response(status=403) for _ in range(5)]
    for transition in ("a", "b", "a", "c", "a"):
        await told.tell(OUT.model_copy(update={"id": transition}))
        now += 900.0
    keys = [headers["Idempotency-Key"].split(":")[1] for headers, _ in server.posts["/chat"]]
    assert keys == ["a", "b", "c"]
    assert len(server.posts["/refusing"]) == 5


async def test_a_server_that_hangs(plugin, server):
    """Each target has its own deadline: the others are notified meanwhile."""
    server.hangs = asyncio.Event()
    async with serving() as other:
        told = plugin(
            slow={"url": f"{server.url}/slow", "format": "slack", "timeout_s": 0.2},
            chat={"url": f"{other.url}/chat", "format": "slack"},
        )
        outcome = await told.tell()
    server.hangs.set()
    assert (outcome.effect, outcome.detail) == (Effect.FAILED, "slow: no answer within 0.2 s; chat: notified")


@pytest.mark.usefixtures("live")
async def test_a_server_that_is_not_there(plugin):
    """The survey at the coordinator's start reports it, too."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and it does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/{URL_SECRET}"
        told = plugin(chat={"url": url, "format": "slack"})
        outcome = await told.tell()
        error = (await told.answer("muster_survey")).error or ""
    assert outcome.effect is Effect.FAILED
    assert outcome.detail == "chat: no answer: Connection refused"
    assert error.startswith("plugins.webhook.targets.chat: cannot reach 127.0.0.1 (Connection refused): ")
    assert "check url" in error
    assert URL_SECRET not in error + outcome.detail


async def test_redirects_are_not_followed(plugin, server, tmp_path):
    """Another host must not get our secrets."""
    server.answers["/ops"] = [web.Response(status=307, headers={"Location": "/elsewhere"})]
    outcome = await plugin(ops=generic(tmp_path, f"{server.url}/ops")).tell()
    assert outcome.effect is Effect.FAILED
    assert "set url to where it leads" in outcome.detail
    assert list(server.posts) == ["/ops"]


async def test_no_secret_is_shown(plugin, server, tmp_path, caplog):
    """Some servers answer with all that they were sent; neither details nor logs pass it on."""
    caplog.set_level(logging.DEBUG)
    said = f"Cannot POST /services/{URL_SECRET}\n with Bearer {TOKEN}, " + "and on " * 10_000
    server.answers[f"/services/{URL_SECRET}"] = [web.Response(status=404, text=said)]
    url = f"{server.url}/services/{URL_SECRET}"
    told = plugin(chat={"url": url, "format": "slack", "token_file": str(tmp_path / "token")})
    outcome = await told.tell()
    assert outcome.effect is Effect.FAILED
    assert outcome.detail.startswith("chat: refused: HTTP 404: Cannot POST /***/B00/*** with Bearer ***, and on")
    assert len(outcome.detail) < 300
    assert "nobody-shall-read" not in outcome.detail + caplog.text + repr(told.plugins.config.claimed)


@pytest.mark.parametrize(
    ("holds", "text"),
    [
        ("nobody-shall-read!", "does not hold a signing key: it is not base64"),
        ("bm9ib2R5LXNoYWxsLXJlYWQ=", "it holds 17 bytes, not 24 to 64"),
        ("", "does not hold one word"),
        ("two nobody-shall-read", "does not hold one word"),
        ("nobody-shall-read\x7f", "does not hold one word"),
        ("nobody-shall-read-ä", "does not hold one word"),
    ],
)
async def test_a_file_without_its_secret(plugin, server, tmp_path, holds, text):
    """The survey and each try report it, and writing the file fixes it; nothing is posted without the secret."""
    told = plugin(ops=generic(tmp_path, f"{server.url}/ops"))
    (tmp_path / "secret").write_text(holds, encoding="utf-8")
    outcome, survey = await told.tell(), await told.answer("muster_survey")
    assert outcome.effect is Effect.FAILED
    for said in (outcome.detail, survey.error):
        assert f"plugins.webhook.targets.ops.secret_file: {tmp_path}/secret" in said
        assert text in said
        assert "nobody-shall-read" not in said
    assert server.posts == {}
    (tmp_path / "secret").write_text(SECRET)
    assert (await told.tell()).effect is Effect.DONE


async def test_a_file_that_is_not_there(plugin, server, tmp_path):
    """The other targets are still notified."""
    pager = {"url": f"{server.url}/pager", "format": "pagerduty", "routing_key_file": str(tmp_path / "gone")}
    outcome = await plugin(pager=pager, ops=generic(tmp_path, f"{server.url}/ops")).tell()
    assert outcome.effect is Effect.FAILED
    assert outcome.detail.startswith("pager: plugins.webhook.targets.pager.routing_key_file: cannot read")
    assert outcome.detail.endswith("; ops: notified")


async def test_survey(plugin, server, tmp_path):
    """It connects to each target and posts nothing; a webhook drains no node."""
    told = plugin(ops=generic(tmp_path, f"{server.url}/ops"), chat={"url": f"{server.url}/chat", "format": "slack"})
    survey = (await told.answer("muster_survey")).value
    assert (survey.summary, survey.can_cordon, survey.nodes) == ("webhook ops, chat", False, ())
    assert server.posts == {}
    assert (await plugin().answer("muster_survey")).value is None


async def test_it_works_again_after_it_was_closed(plugin, server):
    """Closing twice is fine, as is closing what was never used."""
    told = plugin(chat={"url": f"{server.url}/chat", "format": "slack"})
    for _ in range(2):
        assert (await told.answer("muster_close")).error is None
    assert (await told.tell()).effect is Effect.DONE
    for _ in range(2):
        assert (await told.answer("muster_close")).error is None
    assert (await told.tell(BACK)).effect is Effect.DONE


@pytest.mark.usefixtures("live")
def test_agents_do_not_pay_for_it():
    """They load the plugin too, but never the HTTP client."""
    program = "import sys; import muster_plugins.notifiers.webhook.plugin; print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"
