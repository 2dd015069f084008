"""Requests that make no sense are refused with what would, by the API and by the command line, and nothing starts."""

import json

import pytest

SWEEP = {"check": "meeting", "strategy": "pairs", "nodes": ["n1", "n2"]}

REQUESTS = [
    ("/api/v1/nodes/n1/runs", {"check": "mischeif"}, 422, ("'mischeif'", "did you mean 'mischief'?", "valid: ")),
    ("/api/v1/nodes/n1/runs", {"check": "meeting"}, 422, ("'meeting'", "run by groups")),
    ("/api/v1/nodes/n1/runs", {"check": "mischief", "params": {"doo": "x"}}, 422, ("'doo'", "valid: book, do")),
    ("/api/v1/nodes/n1/runs", {"check": "mischief", "params": {"do": 7}}, 422, ("'do'", "7 is not of type 'string'")),
    ("/api/v1/nodes/n9/runs", {"check": "mischief"}, 404, ("'n9'", "valid: n1")),
    ("/api/v1/sweeps", SWEEP | {"check": "meating"}, 422, ("'meating'", "did you mean 'meeting'?", "valid: ")),
    (
        "/api/v1/sweeps",
        SWEEP | {"strategy": "pears"},
        422,
        ("'pears'", "'pairs'", "valid: adaptive, bisect, pairs, round_robin, single, whole"),
    ),
    ("/api/v1/sweeps", SWEEP | {"nodes": ["n1", "n9"]}, 422, ("'n9'", "valid: n1, n2, n3, n4")),
    ("/api/v1/sweeps", SWEEP | {"params": {"dor": "open"}}, 422, ("'dor'", "'door'", "valid: book, door, hosts")),
    ("/api/v1/sweeps", SWEEP | {"params": {"door": "ajar"}}, 422, ("'door'", "'ajar' is not one of")),
    ("/api/v1/sweeps", SWEEP | {"nodes": ["n1"]}, 422, ("at least 2 nodes", "there are 1")),
    ("/api/v1/sweeps", SWEEP | {"select": "n1,n2"}, 422, ("nodes and select contradict each other",)),
    ("/api/v1/sweeps", SWEEP | {"nodes": []}, 422, ("'nodes'",)),
    ("/api/v1/sweeps", SWEEP | {"max_parallel": "1"}, 422, ("max_parallel 1", "pairs needs 2")),
    ("/api/v1/sweeps", SWEEP | {"check": "mischief"}, 422, ("'mischief'", "only valid strategy is single")),
]

COMMANDS = [
    ("sweep start --check meating", ("'meating'", "did you mean 'meeting'?")),
    (
        "sweep start --check meeting --strategy pears",
        ("'pears'", "valid: adaptive, bisect, pairs, round_robin, single, whole"),
    ),
    ("sweep start --check meeting --nodes n1,n9", ("'n9'", "valid: n1, n2, n3, n4")),
    ("sweep start --check meeting --param dor=open", ("'dor'", "'door'")),
    ("sweep start --check meeting --param door=ajar --json", ("'door'", "'ajar' is not one of")),
    ("sweep start --check meeting --nodes=", ("selection is empty", "for example rack=r1,r2")),
    ("sweep start --check meeting --nodes rack=r1", ("'r1'", "(valid: none)")),
    ("sweep start --check meeting --nodes shelf=r1", ("'shelf'", "valid: ", "rack")),
    ("sweep start --check meeting --nodes health=FAILED", ("no node fits every term", "health=FAILED fits none")),
    ("sweep start --check meeting --nodes n1 --strategy pairs", ("pairs needs at least 2 nodes", "there are 1")),
    ("sweep start --check meeting --nodes n1 --dry-run", ("adaptive needs at least 2 nodes", "there are 1")),
    ("sweep start --check meeting --strategy pairs --max-parallel 1", ("max_parallel 1", "pairs needs 2")),
    ("sweep start --check meeting --strategy whole --max-parallel 25%", ("25% contradicts strategy whole",)),
    ("sweep start --check meeting --max-parallel lots", ("'lots' is neither a number of nodes", "25%")),
    ("sweep start --check meeting --max-parallel 200%", ("'200%' is neither",)),
    ("sweep start --check meeting --max-node-s 1", ("max_node_s 1 is less than", "one group of 2")),
    ("sweep start --check meeting --max-rounds 0", ("'max_rounds'", "greater than or equal to 1")),
    ("sweep start --check meeting --passes 0", ("'passes'", "greater than or equal to 1")),
    ("sweep start --check meeting --strategy whole --pairing rail", ("'rail' is for strategy pairs", "whole")),
    ("sweep show nothing", ("'nothing'",)),
    ("sweep abort nothing", ("'nothing'",)),
    ("node show n9", ("'n9'",)),
    ("check run mischeif", ("'mischeif'", "did you mean 'mischief'?")),
    ("check run mischief --param doo=x", ("'doo'", "valid: ")),
    ("check run mischief --param do=7", ("'do'", "must be a text")),
    ("check show nothing", ("'nothing'", "valid: ")),
]


TOPOLOGIES = [
    (
        "loop.conf",
        "SwitchName=s1 Switches=s2\nSwitchName=s2 Switches=s1,leaf1\nSwitchName=leaf1 Nodes=n1",
        ("s1", "s2"),
    ),
    ("lost.conf", "SwitchName=s1 Switches=leaf1,leaf2\nSwitchName=leaf1 Nodes=n1", ("leaf2",)),
    ("both.toml", "[[leaf]]\nname = 'l1'\nnodes = ['n1']\n[[leaf]]\nname = 'l2'\nnodes = ['n1']", ("n1", "l1", "l2")),
    ("none.toml", "", ("places no node",)),
]


@pytest.fixture
def what_happened(fleet):
    """Everything that the coordinator has counted but for what happens by itself."""
    return lambda: {name: fleet.counter(name) for name in ("muster_sweeps_total", "muster_groups_total")}


@pytest.mark.parametrize("case", REQUESTS, ids=lambda case: f"{case[0].rpartition('/')[2]} {case[1]}")
def test_the_api_refuses_with_a_problem(fleet, what_happened, case):
    """Problem details that name what was wrong and what is valid."""
    path, body, status, words = case
    before = what_happened()
    answered, kind, problem = fleet.ask("POST", path, body)
    assert (answered, kind, problem["status"]) == (status, "application/problem+json", status), problem
    assert all(word in problem["detail"] for word in words), problem
    assert what_happened() == before


@pytest.mark.parametrize(("command", "words"), COMMANDS)
def test_the_command_line_refuses_in_one_line(fleet, mischief, muster, command, words):
    """Exit code 64, nothing on stdout, and on stderr the same sentence without a traceback."""
    done = muster(*command.split(), env={**fleet.env, "PYTHONPATH": str(mischief)})
    assert (done.returncode, done.stdout) == (64, ""), done
    told = [line for line in done.stderr.splitlines() if line.startswith("muster: ")]
    assert len(told) == 1, done.stderr
    assert all(word in told[0] for word in words), told
    assert "Traceback" not in done.stderr


def test_a_lost_node_is_refused(fleet, muster, eventually):
    """By its name, with when it was heard of last."""
    fleet.agents["n4"].kill()
    eventually(lambda: fleet.api.get("nodes", "n4")["lost"], "the node to be lost")
    done = muster("sweep", "start", "--check", "meeting", "--nodes", "n1,n4", env=fleet.env)
    assert (done.returncode, done.stdout) == (64, ""), done
    assert done.stderr.startswith("muster: node 'n4' is lost: last heard at ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("name", "text", "words"), TOPOLOGIES)
def test_a_topology_file_that_contradicts_itself_is_refused(muster, tmp_path, name, text, words):
    """By the coordinator that is to go by it, with the place in the file."""
    path = tmp_path / name
    path.write_text(text)
    done = muster("coordinator", env={"MUSTER_TOPOLOGY_FILE": str(path), "MUSTER_DATA_DIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (64, ""), done
    (told,) = (line for line in done.stderr.splitlines() if "topology_file: " in line)
    assert all(word in told for word in (str(path), *words)), told
    assert "Traceback" not in done.stderr


def test_a_place_whose_nodes_nobody_has_heard_of_is_refused(fleet, muster, tmp_path):
    """The nodes that the topology file has there are named."""
    path = tmp_path / "topology.toml"
    path.write_text("[[rack]]\nname = 'r9'\nnodes = ['n91', 'n92']")
    fleet.coordinator.kill()
    fleet.coordinator.settings["topology_file"] = str(path)
    fleet.start_coordinator()
    del fleet.coordinator.settings["topology_file"]
    done = muster("sweep", "start", "--check", "meeting", "--nodes", "rack=r9", env=fleet.env)
    assert (done.returncode, done.stdout) == (64, ""), done
    assert "rack 'r9' is in the topology file, but no agent has reported from there yet" in done.stderr
    assert "n91, n92" in done.stderr


def test_a_run_of_the_command_line_is_json_and_nothing_else(mischief, muster, tmp_path):
    """A check that prints garbage does not get it into what is meant for programs."""
    env = {"PYTHONPATH": str(mischief), "MUSTER_DATA_DIR": str(tmp_path), "MUSTER_PLUGINS__DISABLED": '["nvml"]'}
    done = muster("check", "run", "mischief", "--param", "do=print_garbage_and_raise", "--json", env=env)
    (run,) = json.loads(done.stdout)["items"]
    assert (done.returncode, run["verdict"], run["findings"][0]["code"]) == (3, "UNKNOWN", "run.raised")
