"""Whatever a check does becomes a finding on its run; agent and other checks go on, and no process is left behind."""

import pytest

NODE = "n4"  # whose runs may take a quarter of a GiB

OUTCOMES = [
    ("raise_error", "UNKNOWN", ["run.raised"], "the driver said no"),
    ("judge_badly", "UNKNOWN", ["run.raised"], "judging went wrong"),
    ("leave", "UNKNOWN", ["run.exited"], "code 3"),
    ("leave_hard", "UNKNOWN", ["run.exited"], "code 4"),
    ("crash", "UNKNOWN", ["run.killed"], "SIGSEGV"),
    ("allocate", "UNKNOWN", ["run.out_of_memory"], "memory"),
    ("garble_the_line", "UNKNOWN", ["run.garbage"], "not JSON"),
    ("flood_the_line", "UNKNOWN", ["run.garbage"], "1048576 bytes"),
    ("print_garbage", "PASS", [], ""),
    ("print_garbage_and_raise", "UNKNOWN", ["run.raised"], "after all that noise"),
    ("fork_children", "PASS", ["run.leftovers"], "3 processes"),
    ("fork_a_daemon", "PASS", ["run.leftovers"], "1 process"),
    ("start_a_program", "PASS", ["run.leftovers"], "1 process"),
    ("fork_all_and_crash", "UNKNOWN", ["run.killed", "run.leftovers"], "4 processes"),
]
"""What `print_garbage` prints goes nowhere: output is not what a run is judged by, so there is nothing to find."""


def check_outcome(run, verdict, codes, text):
    assert (run["verdict"], [finding["code"] for finding in run["findings"]]) == (verdict, codes), run
    assert not text or any(text in f"{finding['summary']} {finding['evidence']}" for finding in run["findings"]), run


@pytest.mark.parametrize(("deed", "outcome"), [(deed, outcome) for deed, *outcome in OUTCOMES])
def test_what_a_check_does_is_a_finding_on_its_run(fleet, book, eventually, deed, outcome):
    """The API shows the run with its finding; the agent is free afterwards and nothing of the run is left."""
    run = fleet.run(NODE, "mischief", do=deed, book=str(book))
    check_outcome(run, *outcome)
    assert book.pids() or "fork" not in deed
    eventually(book.is_closed, "every process of the run to be gone")
    fleet.wait_until_free(NODE)
    check_outcome(fleet.run(NODE, "mischief"), "PASS", [], "")


@pytest.mark.parametrize("deed", ["hang", "fork_all_and_hang"])
def test_a_check_that_hangs_is_killed_and_the_others_go_on_meanwhile(fleet, book, eventually, deed):
    """Other checks of the node run while one hangs; at its deadline all that it has started is killed."""
    asked = fleet.api.post(
        "nodes", NODE, "runs", body={"check": "mischief", "params": {"do": deed, "book": str(book)}}
    )["id"]
    eventually(lambda: asked in fleet.agents[NODE].health["running"], "the run to hang")
    check_outcome(fleet.run(NODE, "simulated"), "PASS", [], "")
    assert fleet.find_run(NODE, "mischief", asked) is None
    run = eventually(lambda: fleet.find_run(NODE, "mischief", asked), "the end of the run")
    check_outcome(run, "UNKNOWN", ["run.timeout"], "2 s")
    eventually(book.is_closed, "every process of the run to be gone")


@pytest.mark.parametrize(
    ("deed", "code"), [("hang", "run.hung"), ("crash", "run.killed"), ("garble_the_line", "run.garbage")]
)
def test_a_resident_check_that_misbehaves_takes_only_its_process_along(fleet, eventually, deed, code):
    """The resident process is started again; its other checks pass again, and those outside never notice."""
    run = fleet.run(NODE, "resident_mischief", do=deed)
    check_outcome(run, "UNKNOWN", [code], "")
    check_outcome(fleet.run(NODE, "mischief"), "PASS", [], "")
    eventually(lambda: fleet.run(NODE, "simulated")["verdict"] == "PASS", "a resident check to pass again")


def test_a_plugin_that_raises_at_import_is_a_finding(fleet):
    """Every node reports it as a run of the pseudo check `plugins`, and says in its view what was wrong."""
    for node in fleet.agents:
        run = fleet.runs(node, "plugins")[0]
        check_outcome(run, "UNKNOWN", ["plugins.failed"], "this plugin ends whoever imports it")
        view = fleet.api.get("nodes", node)
        status = {plugin["name"]: plugin["status"] for plugin in view["plugins"]}
        assert (status["ruin"], status["mischief"]) == ("failed", "loaded")
