"""`muster reference`: by itself, and against a real coordinator."""

import asyncio
import io
import json
import sys
from typing import NamedTuple

import pytest

from muster import cli
from muster.references import shipped

SET = (
    "set",
    "gemm",
    "rpm",
    "--when",
    "gpu_model=H900",
    "--when",
    "nodes=[1, 2]",
    "--source",
    "our acceptance",
    "--by",
    "ann",
)
OWN = """
[[reference]]
check = "lathe"
metric = "rpm"
when = { maker = ["A", "B"], spindles = { at_least = 2 } }
warn_below = 4
source = "its maker"

[[reference]]
check = "lathe"
metric = "rpm"
fail_below = 2.5
unit = "1/min"
source = "written here"
"""


class Done(NamedTuple):
    returncode: int | str | None
    stdout: str
    stderr: str


@pytest.fixture
def here(monkeypatch, capsys, tmp_path):
    """Runs `muster reference …` into a pipe, in this process, on a machine with a reference of its own."""
    monkeypatch.delenv("COLUMNS", raising=False)  # which the workers of the tests have
    (tmp_path / "references.toml").write_text(OWN)
    (tmp_path / "muster.toml").write_text(f'references_file = "{tmp_path}/references.toml"\n')

    monkeypatch.setenv("MUSTER_CONFIG", str(tmp_path / "muster.toml"))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["muster", "reference", *arguments])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        return Done(ending.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def fleets(muster, coordinator):
    """Runs `muster reference …` into a pipe against a coordinator; gives stdout of what ends well."""

    def run(*arguments, code=0):
        done = muster("reference", *arguments, env={**coordinator.env, "COLUMNS": ""})
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout if code == 0 else done.stderr

    return run


def a_run(**facts):
    """What `muster check run --json` prints of one run."""
    run = {
        "id": "r1", "node": "n1", "check": "lathe", "verdict": "FAIL", "metrics": {"took_s": 3.0, "rpm": [2.0, None]},
        "facts": facts, "started_at": "2026-01-01T00:00:00Z", "duration_s": 1.0,
    }  # fmt: skip
    return json.dumps({"items": [run], "next_cursor": None})


def test_list_needs_no_coordinator(here):
    """The shipped references, then those of this machine's file, in columns or as JSON."""
    header, *lines = here("list").stdout.splitlines()
    assert header.split() == ["CHECK", "METRIC", "WHEN", "BOUNDS", "ORIGIN"]
    assert len(lines) == len(shipped()) + 2
    assert 'maker: "A" or "B", spindles: at least 2' in lines[-2]
    assert lines[-1].split() == ["lathe", "rpm", "-", "fail", "below", "2.5", "1/min", "operator"]
    items = json.loads(here("list", "--json").stdout)["items"]
    assert items[:-2] == [row.model_dump(mode="json") for row in shipped()]
    assert json.loads(here("list", "--check", "lathe", "--json").stdout)["items"] == items[-2:]


def test_show_has_the_sources(here):
    """All references of a metric with everything about them."""
    assert here("show", "lathe", "rpm").stdout.splitlines() == [
        "lathe rpm, operator",
        '  when    maker: "A" or "B", spindles: at least 2',
        "  bounds  warn below 4",
        "  source  its maker",
        "",
        "lathe rpm, operator",
        "  when    always",
        "  bounds  fail below 2.5 1/min",
        "  source  written here",
    ]
    assert json.loads(here("show", "lathe", "rpm", "--json").stdout)["items"][-1]["source"] == "written here"


@pytest.mark.parametrize("columns", [80, 100])
def test_the_list_fits_a_terminal(here, monkeypatch, columns):
    """Conditions are below their reference and none is lost; --wide and a pipe have one line for each reference."""
    monkeypatch.setenv("COLUMNS", str(columns))
    narrow, wide = here("list").stdout, here("list", "--wide").stdout
    assert max(map(len, narrow.splitlines())) <= columns
    *_, first, when, last = narrow.splitlines()
    assert first.split() == ["lathe", "rpm", "warn", "below", "4", "operator"]
    assert when == '    when maker: "A" or "B", spindles: at least 2'
    assert last.split() == ["lathe", "rpm", "fail", "below", "2.5", "1/min", "operator"]
    assert narrow.count("    when ") == sum(": " in line for line in wide.splitlines())
    monkeypatch.delenv("COLUMNS")
    assert here("list").stdout == wide


def test_explain_reads_what_check_run_prints(here, tmp_path):
    """From a file: which reference applies to each metric, and why the others do not."""
    (tmp_path / "report.json").write_text(a_run(maker="C"))
    explained = here("explain", "--file", str(tmp_path / "report.json"))
    assert explained.returncode == 0, explained.stderr
    assert explained.stdout.splitlines() == [
        "lathe on n1: FAIL (run r1)",
        "  rpm: 2, not measured",
        "    applies: operator, fail below 2.5 1/min",
        "             applies everywhere",
        "             source: written here",
        '    not:     operator, warn below 4 when maker: "A" or "B", spindles: at least 2',
        '             maker must be "A" or "B", is "C"; spindles must be at least 2, is not known',
        "  without a reference: took_s",
    ]


def test_explain_reads_from_a_pipe(here, monkeypatch):
    """Also as JSON, for programs; of two that fit the more specific one applies."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(a_run(maker="A", spindles=2)))
    (item,) = json.loads(here("explain", "--file", "-", "--json").stdout)["items"]
    assert (item["run"], item["check"], item["without_reference"]) == ("r1", "lathe", ["took_s"])
    (rpm,) = item["metrics"]
    assert (rpm["metric"], rpm["value"]) == ("rpm", [2.0, None])
    assert [(one["applies"], one["reference"]["warn_below"]) for one in rpm["considered"]] == [(True, 4), (False, None)]


WRONG = [
    (("list", "--check", "lath"), "'lath'; did you mean 'lathe'?"),
    (("list", "--check", "lath"), "; these are references of this machine, --url URL shows those of the fleet"),
    (("show", "lathe", "rpms"), "unknown reference 'lathe rpms'; did you mean 'lathe rpm'?"),
    (("set", "lathe", "rpm", "--when", "maker", "--source", "x"), "condition 'maker' is not KEY=VALUE"),
    (("set", "lathe", "rpm", "--fail-below", "1"), "--source"),
    (("set", "lathe", "rpm", "--fail-below", "much", "--source", "x"), "--fail-below"),
    (("set", "lathe", "rpm", "--fail-below", "nan", "--source", "x"), "one of the numbers is not finite"),
    (("explain",), "either the id of a run that the coordinator has, or --file FILE"),
    (("explain", "r1", "--file", "x"), "either the id of a run"),
    (("explain", "--file", "/nowhere"), "--file: cannot read /nowhere: No such file"),
    (("explain", "--file", "/dev/null"), "--file: /dev/null is not the JSON output of `muster check run`"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_wrong_usage(here, arguments, words):
    """Exit code 64 and one line that says what would be right."""
    done = here(*arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_explain_reads_the_report_of_a_suite(here, tmp_path):
    """The runs of all its steps."""
    items = json.loads(a_run())["items"]
    (tmp_path / "report.json").write_text(json.dumps({"steps": [{"runs": items}, {"runs": []}, {"runs": items}]}))
    explained = here("explain", "--file", str(tmp_path / "report.json"), "--json")
    assert [item["run"] for item in json.loads(explained.stdout)["items"]] == ["r1", "r1"]


@pytest.mark.parametrize(
    "content", ["[]", '{"steps": [7]}', '{"items": 1}', '{"items": [{"id": "r"}]}', "\xff", "{}", "7", "[" * 100_000]
)
def test_a_file_with_something_else_is_refused(here, tmp_path, content):
    """One line, not a traceback."""
    (tmp_path / "other").write_text(content)
    done = here("explain", "--file", str(tmp_path / "other"))
    assert (done.returncode, "is not the JSON output" in done.stderr) == (64, True)


@pytest.mark.parametrize("arguments", [("set", "a", "b", "--source", "x"), ("remove", "a", "b"), ("explain", "r1")])
def test_without_a_coordinator(here, arguments):
    """What needs one says so; exit code 69."""
    done = here(*arguments, "--url", "http://127.0.0.1:1")
    assert done.returncode == 69
    assert "no coordinator answers at http://127.0.0.1:1" in done.stderr


def test_a_wrong_file_of_references_is_told(here, tmp_path):
    """With the number of the row and the key."""
    (tmp_path / "references.toml").write_text(OWN + "warn_belo = 3\n")
    done = here("list")
    assert done.returncode == 64
    assert "references.toml, row 2: unknown field 'warn_belo'; did you mean 'warn_below'?" in done.stderr


def test_set_list_and_remove_at_the_coordinator(fleets, coordinator):
    """What is set is there for everybody, also after a restart, until it is removed."""
    assert "fail below 7" in fleets(*SET, "--fail-below", "7")
    said = json.loads(fleets(*SET, "--fail-below", "5.5", "--warn-below", "6", "--unit", "1/min", "--json"))
    assert (said["fail_below"], said["when"]) == (5.5, {"gpu_model": "H900", "nodes": [1, 2]})
    assert json.loads(fleets("list", "--json"))["items"][len(shipped()) :] == [said]
    coordinator.end()
    coordinator.start()
    (last,) = (line for line in fleets("list").splitlines() if line.endswith("operator ann"))
    assert 'gpu_model: "H900", nodes: 1 or 2' in last
    assert "fail below 5.5, warn below 6 1/min" in last
    assert '(valid: ["gemm", "rpm", {"gpu_model": "H900", ' in fleets("remove", "gemm", "rpm", code=64)
    where = ("--when", "nodes=[1,2]", "--when", "gpu_model=H900")
    assert json.loads(fleets("remove", "gemm", "rpm", *where, "--json"))["metric"] == "rpm"
    assert len(json.loads(fleets("list", "--json"))["items"]) == len(shipped())


def test_the_coordinator_refuses_what_is_wrong(fleets):
    """In its words, with exit code 64."""
    assert "give at least one of fail_below" in fleets(*SET, code=64)
    assert "must not fall in this order" in fleets(*SET, "--fail-below", "2", "--warn-below", "1", code=64)
    assert "no run 'r9'; /api/v1/runs lists" in fleets("explain", "r9", code=64)


async def test_explain_asks_the_coordinator_for_the_run(fleets, nodes, coordinator, eventually):
    """By its id, with the facts of the run and the references of the fleet."""
    async with nodes(coordinator, "n1") as them:
        await them["n1"].report("gemm", metrics={"rpm": 4.0}, facts={"gpu_model": "H900", "nodes": 2})
        await eventually(lambda: not them["n1"].kept)
        await asyncio.to_thread(lambda: fleets(*SET, "--fail-below", "5"))
        explained = (await asyncio.to_thread(fleets, "explain", "n1-1")).splitlines()
    assert explained[0] == "gemm on n1: PASS (run n1-1)"
    assert explained[1:4] == [
        "  rpm: 4",
        '    applies: operator ann, fail below 5 when gpu_model: "H900", nodes: 1 or 2',
        "             all its conditions are met",
    ]
