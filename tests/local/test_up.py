"""`muster up`: broker, coordinator and agent on this host, as one."""

import signal
import socket
import urllib.request

import pytest

from muster.client import Client
from muster.local_token import find_token


def is_known(url):
    """Whether the agent is there and has said which checks it has."""
    nodes = Client(url).get("nodes")["items"]
    return [node["name"] for node in nodes if node["plugins"] and not node["lost"]] == ["here"]


@pytest.fixture
def up(local, eventually):
    """A `muster up` whose agent is known to its coordinator, and the URL of the API."""
    running = local("up")
    url = running.logged("coordinator_ready")["api"]
    eventually(lambda: is_known(url), "the agent to be known")
    return running, url


def test_it_prints_the_address_of_the_page(up):
    """A browser that opens it sees the fleet."""
    running, url = up
    assert f"the fleet in a browser, as soon as the coordinator is ready: {url}/\n" in running.text
    page = urllib.request.urlopen(f"{url}/", timeout=20).read().decode()
    assert 'href="nodes/here"' in page
    assert running.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_five_seconds(up, nothing_left, number):
    """With exit code 0; broker, coordinator, agent, launcher and resident process are gone."""
    running, _ = up
    family = running.family()
    assert len(family) >= 4
    code, took_s = running.end(number)
    assert (code, took_s < 5) == (0, True)
    nothing_left(family)  # the kernel ends orphans after their parent, and init may take a moment to reap them
    assert "Traceback" not in running.text


def test_killed_it_leaves_nothing_behind(up, nothing_left):
    """Its parts end when it does, however that comes about."""
    running, _ = up
    family = running.family()
    running.end(signal.SIGKILL)
    nothing_left(family)


@pytest.mark.parametrize(("part", "connects"), [("coordinator", ("coordinator", "agent")), ("agent", ("agent",))])
def test_a_part_that_dies_is_started_again(up, eventually, part, connects):
    """It says so, and a check can be run again; with the coordinator goes the broker, so that both connect again."""
    running, url = up
    running.part(part).kill()
    assert running.logged("part_ended")["part"] == part
    running.logged("broker_connected", times=2 + len(connects))
    eventually(lambda: is_known(url), "the agent to be back")
    client = Client(url, find_token(running.data_dir, url))
    run = client.post("nodes", "here", "runs", body={"check": "simulated"})["id"]
    eventually(lambda: run in {item["id"] for item in client.get("runs")["items"]}, "the run to be stored")
    assert running.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"MUSTER_FLEEET": "x"}, "did you mean 'fleet'?"),
        ({"MUSTER_HTTP__LISTEN": "0.0.0.0:0"}, "http.token_file"),
        ({"MUSTER_CHECKS__SIMULATE__INTERVAL_S": "5"}, "did you mean 'simulated'?"),
        ({"MUSTER_PLUGINS__SIMULATED__DEVICES": "-1"}, "plugins.simulated.devices"),
    ],
)
def test_wrong_settings_are_refused(local, settings, words):
    """With exit code 64, a sentence that says what would be right, and without trying again."""
    running = local("up", **settings)
    assert running.process.wait(30) == 64, running.text
    assert words in running.text
    assert "Traceback" not in running.text
    assert "part_ended" not in running.text


@pytest.mark.parametrize("setting", ["MUSTER_HTTP__LISTEN", "MUSTER_BROKER__LISTEN", "MUSTER_AGENT__LISTEN"])
def test_a_port_that_is_taken_is_named(local, setting):
    """With exit code 69; the part that had started is stopped."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        running = local("up", **{setting: address})
        assert running.process.wait(30) == 69, running.text
    assert address in running.text
    assert setting.removeprefix("MUSTER_").replace("__", ".").lower() in running.text
    assert "Traceback" not in running.text
    assert not running.left()
