import asyncio
import json
import socket
import threading
from functools import partial

import pytest
from tests.cases import cases

from muster.config import Settings
from muster.defaults import TABLES


@pytest.fixture
async def told(coordinator, nodes, eventually, muster):
    """Runs `muster node …` against a coordinator that knows a good node and a bad one."""
    async with nodes(coordinator, "good", "bad") as them:
        await them["good"].report("gemm")
        for _ in range(3):
            await them["bad"].report("gemm", "FAIL")
        await eventually(lambda: not them["good"].kept and not them["bad"].kept)

        async def run(*arguments, **environment):
            env = {**coordinator.env, **environment}
            return await asyncio.to_thread(muster, "node", *arguments, env=env)

        yield run


async def test_list_shows_a_line_for_each_node(told):
    """Name, health, service, devices and findings, in columns."""
    listed = await told("list")
    assert listed.returncode == 0, listed.stderr
    header, bad, good = listed.stdout.splitlines()
    assert header.split() == ["NODE", "HEALTH", "SERVICE", "SEEN", "DEVICES", "FINDINGS"]
    assert bad.startswith("bad ")
    assert "gemm.bad" in bad
    assert "1 x Stand-in (simulated)" in good
    assert header.index("HEALTH") == good.index("HEALTHY")


async def test_an_empty_fleet_says_what_to_do(coordinator, muster):
    """A person at a terminal; a program in a pipe gets the columns."""
    in_terminal, piped = [
        await asyncio.to_thread(muster, "node", "list", env={**coordinator.env, "COLUMNS": columns})
        for columns in ("80", "")
    ]
    assert in_terminal.stdout.startswith("No node has reported yet. On a node, `muster doctor agent` says")
    assert piped.stdout.split() == ["NODE", "HEALTH", "SERVICE", "SEEN", "DEVICES", "FINDINGS"]


async def test_list_is_cut_to_the_width_of_a_terminal_only(told):
    """`grep` finds in a pipe what a narrow terminal would not show."""
    piped = await told("list", COLUMNS="")
    usual, narrow = [await told("list", COLUMNS=str(width)) for width in (80, 50)]
    assert max(map(len, usual.stdout.splitlines())) <= 80
    assert max(map(len, narrow.stdout.splitlines())) <= 50 < max(map(len, piped.stdout.splitlines()))
    assert "gemm.bad" in piped.stdout


@cases(
    ("terms", "names"),
    [
        (("health=SUSPECT,FAILED",), ["bad"]),
        (("health!=FAILED", "name=good"), ["good"]),
        (("good",), ["good"]),
        (("health=DEGRADED",), []),
        (("health=LOST",), []),
        (("health!=LOST", "gpu_model=Stand-in"), ["bad", "good"]),
        (("health=SUSPECT,FAILED name=bad",), ["bad"]),
    ],
)
async def test_list_shows_only_nodes_that_fit(told, terms, names):
    """By the same terms as sweeps have; that none fits is no error."""
    listed = await told("list", *terms)
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == names
    answered = await told("list", *terms, "--json")
    assert [item["name"] for item in json.loads(answered.stdout)["items"]] == names


async def test_list_takes_a_value_with_spaces(told):
    """The shell takes the quotes away, and the words still belong together."""
    refused = await told("list", "gpu_model=Stand in")
    assert refused.stderr == "muster: unknown gpu_model 'Stand in'; did you mean 'Stand-in'? (valid: Stand-in)\n"


async def test_list_is_sorted_and_grouped(told):
    """By any key of selections; --json is what the API answers."""
    for key in ("name", "urgency", "gpu_model", "label:pool"):
        listed = await told("list", "--sort", key)
        assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == ["bad", "good"], key
    grouped = await told("list", "--group", "gpu_model")
    header, line = grouped.stdout.splitlines()
    assert (header.split()[:2], line.split()[:2]) == (["GPU_MODEL", "NODES"], ["Stand-in", "2"])
    answered = json.loads((await told("list", "--group", "name", "good", "--json")).stdout)
    assert [(group["value"], group["nodes"]) for group in answered["items"]] == [("good", 1)]


@cases(
    "arguments", [("--sort", "rak"), ("--group", "rak"), ("--sort", "rack", "--group", "rack"), ("--watch", "--json")]
)
async def test_list_refuses_options_that_mean_nothing(told, arguments):
    """In one line that says what to do."""
    refused = await told("list", *arguments)
    assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (64, "", 1)


@cases("term", ["helth=FAILED", "health=BROKEN", "nobody"])
async def test_list_refuses_a_term_that_means_nothing(told, term):
    """With what would be right; a slip must not look like a healthy fleet."""
    refused = await told("list", term)
    assert (refused.returncode, refused.stdout) == (64, "")
    assert len(refused.stderr.splitlines()) == 1


async def test_a_lost_node_does_not_read_healthy(told, coordinator, nodes, eventually):
    """People see that it is lost; the API keeps both facts apart."""
    async with nodes(coordinator, "gone") as them:
        await them["gone"].report("gemm")
        await eventually(lambda: coordinator.get("/api/v1/nodes/gone")["health"] == "HEALTHY")
        await them["gone"].leave()
        await eventually(lambda: coordinator.get("/api/v1/nodes/gone")["lost"])
    node = coordinator.get("/api/v1/nodes/gone")
    assert (node["health"], node["last_health"], node["lost"]) == ("UNKNOWN", "HEALTHY", True)
    for term in ("gone", "health=LOST", "health=UNKNOWN", "health!=HEALTHY name=gone"):
        header, *lines = (await told("list", term)).stdout.splitlines()
        assert header.startswith("NODE")
        assert [line.startswith("gone  LOST (was HEALTHY)") for line in lines] == [True]
    assert (await told("show", "gone")).stdout.startswith("gone: LOST (was HEALTHY), ")


async def test_json_is_what_the_api_answers(told, coordinator):
    """Nothing but the API's JSON is on stdout."""
    for arguments, path in {
        ("list",): "nodes?limit=1000",
        ("show", "bad"): "nodes/bad",
        ("story", "bad"): "nodes/bad/story?limit=1000",
    }.items():
        answered = await told(*arguments, "--json")
        assert answered.returncode == 0, answered.stderr
        assert json.loads(answered.stdout) == coordinator.get(f"/api/v1/{path}")


async def test_show_says_what_is_wrong_and_why(told):
    """State, checks and findings of one node."""
    shown = await told("show", "bad")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("bad: ")
    for text in ("because ", "gemm.bad", "it is bad", "ERROR", "CHECK"):
        assert text in shown.stdout


async def test_story_goes_from_first_to_last(told):
    """Lines with time, kind and text, in the order in which they happened."""
    lines = (await told("story", "bad")).stdout.splitlines()
    times = [line.split()[0] for line in lines]
    assert len(lines) >= 2
    assert times == sorted(times)


async def test_an_unknown_node_is_refused(told):
    """One line that lists those there are; exit code 64."""
    for command in ("show", "story"):
        refused = await told(command, "worse")
        assert (refused.returncode, refused.stdout) == (64, "")
        assert refused.stderr == "muster: unknown node 'worse' (valid: bad, good)\n"


COMMANDS_WITH_SETTINGS = [
    ("baseline", "list"),
    ("node", "list"),
    ("node", "show", "n1"),
    ("quarantine", "budget"),
    ("quarantine", "hold", "n1", "--reason", "x"),
    ("reference", "set", "gemm", "tflops", "--fail-below", "1", "--source", "x"),
    ("sweep", "list"),
]


async def test_the_settings_say_where_the_coordinator_is(coordinator, nodes, muster, tmp_path):
    """Every command that takes `--config` finds address and token there; `--url` goes before it."""
    port = coordinator.url.rpartition(":")[2]
    settings = tmp_path / "muster.toml"
    directory = coordinator.settings["MUSTER_DATA_DIR"]
    settings.write_text(f'data_dir = "{directory}"\n[http]\nlisten = "127.0.0.1:{port}"\n')
    async with nodes(coordinator, "n1"):
        for command in COMMANDS_WITH_SETTINGS:
            done = await asyncio.to_thread(partial(muster, *command, "--config", str(settings)))
            assert done.returncode == 0, done.stderr
        elsewhere = ("--config", str(settings), "--url", "http://127.0.0.1:1")
        assert (await asyncio.to_thread(muster, "node", "list", *elsewhere)).returncode == 69


@pytest.mark.parametrize(
    ("listen", "url"),
    [("127.0.0.1:1", "http://127.0.0.1:1"), ("0.0.0.0:1", "http://127.0.0.1:1"), ("[::]:1", "http://[::1]:1")],
)
def test_a_coordinator_that_listens_everywhere_answers_here(muster, tmp_path, listen, url):
    """No client can connect to the address that means all of them."""
    token = tmp_path / "token"
    token.write_text("secret")
    env = {"MUSTER_HTTP__LISTEN": listen, "MUSTER_HTTP__TOKEN_FILE": str(token)}
    assert f"no coordinator answers at {url} (" in muster("node", "list", env=env).stderr


def test_the_tables_of_a_settings_file_are_known():
    """Commands that import no model still see a misspelt one."""
    assert set(Settings.model_fields) == TABLES


@cases(
    ("text", "problem"),
    [
        ("[htpp]\nlisten = '127.0.0.1:1'", "unknown setting 'htpp'; did you mean 'http'?"),
        ("http = 3", "setting 'http': must be a table"),
        ("[http]\nlistn = 'x'", "unknown setting 'http.listn'; did you mean 'http.listen'?"),
        ("[http]\nlisten = 'x'", "setting 'http.listen': 'x' is not host:port"),
        ("[http]\nlisten = 3", "setting 'http.listen': must be a text"),
        ("[http]\nlisten = '10.0.0.1:1'", "which needs a token: set http.token_file"),
        ("data_dir = 3", "setting 'data_dir': must be a path"),
        ("data_dir = '~nobody-here/x'", "setting 'data_dir': has a ~ that stands for no home directory"),
    ],
)
def test_a_mistake_in_the_settings_is_named(muster, tmp_path, text, problem):
    """Although a right file is read without the models that know all settings."""
    settings = tmp_path / "muster.toml"
    settings.write_text(text)
    refused = muster("node", "list", "--config", str(settings))
    assert refused.returncode == 64
    assert problem in refused.stderr


def test_without_a_coordinator(muster):
    """One line that says what was asked and how to ask elsewhere; exit code 69."""
    refused = muster("node", "list", "--url", "http://127.0.0.1:1")
    assert refused.returncode == 69
    assert "no coordinator answers at http://127.0.0.1:1" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("url", ["localhost", "ftp://x", "http://", "http://x:y", "http://node..example:1"])
def test_a_url_that_is_none(muster, url):
    """Wrong usage, in one line."""
    refused = muster("node", "list", "--url", url)
    assert refused.returncode == 64
    assert "--url" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


OTHER_JSON = (b"HTTP/1.0 200 OK\r\n\r\n{}", b"HTTP/1.0 200 OK\r\n\r\n[1]", b"HTTP/1.0 404 Not Found\r\n\r\n[]")


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.0 200 OK\r\n\r\n<html>", *OTHER_JSON])
def test_something_else_than_a_coordinator(muster, said):
    """Whatever answers in another way is not taken for a coordinator; exit code 69 and one line."""

    def serve():
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        refused = muster("node", "list", "--url", f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert refused.returncode == 69
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("token", ["two\nlines-of-it", "söcret-of-it", "two words-of-it"])
def test_a_token_that_no_header_can_hold(muster, tmp_path, token):
    """Is refused in one line that does not print it."""
    (tmp_path / "token").write_text(token)
    refused = muster("node", "list", "--url", "http://127.0.0.1:1", "--token-file", str(tmp_path / "token"))
    assert (refused.returncode, len(refused.stderr.splitlines())) == (64, 1)
    assert "--token-file" in refused.stderr
    assert "of-it" not in refused.stderr


def test_the_token_comes_from_the_option_or_the_settings(muster, coordinator, tmp_path):
    """Without it the API refuses; with it, from either place, it answers."""
    coordinator.end()
    token = tmp_path / "token"
    token.write_text("secret\n")
    coordinator.settings["MUSTER_HTTP__TOKEN_FILE"] = str(token)
    coordinator.start()
    without = muster("node", "list", "--url", coordinator.url)
    assert (without.returncode, "http.token_file" in without.stderr) == (64, True)
    assert muster("node", "list", "--url", coordinator.url, "--token-file", str(token)).returncode == 0
    settings = {"MUSTER_HTTP__TOKEN_FILE": str(token)}
    assert muster("node", "list", "--url", coordinator.url, env=settings).returncode == 0


async def test_a_name_that_is_no_text_is_unknown(told):
    """A terminal may send bytes that are not UTF-8."""
    for command in ("show", "story"):
        refused = await told(command, "caf\udce9")
        assert refused.returncode == 64
        assert refused.stderr.startswith("muster: unknown node 'caf")
