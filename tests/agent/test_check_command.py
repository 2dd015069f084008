"""`muster check` from the command line to the exit code, with throw-away checks in real child processes."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from unittest.mock import Mock

import psutil
import pytest
from pydantic import Field

from muster import cli, logs, plugins
from muster.check import Params, Scope, Skip
from muster.errors import Unavailable
from muster.model import MOST_DEVICES, Device, Finding, Inventory, Measurement, Severity
from muster.wire.messages import PluginInfo
from muster_agent.acceptance import files
from muster_agent.commands.report_options import MOST_GPUS


class Size(Params):
    size: int = Field(3, ge=1, description="How much of it")


class Depth(Params):
    depth: int = 1
    name: str = "x"


def measure_size(params, context):
    context.progress(f"measuring {params.size}")
    return Measurement(
        metrics={"size": params.size, "gpus": context.expected_gpus, "each": [1.5, None]},
        facts={"timeout_s": context.timeout_s, "devices": len(context.devices)},
    )


def finding_of(severity: Severity):
    def judge(_measurement, _references):
        return [Finding(code="throwaway.found", summary="look at this", severity=severity, device=0)]

    return judge


def meet(_params, context):
    return Measurement(metrics={"world": context.rendezvous().world_size})


def skip(_params, _context):
    raise Skip("nothing here")


def fail(_params, _context):
    raise RuntimeError("broken")


@pytest.fixture
def checks(check):
    """One check for each verdict, and one of scope GROUP."""
    return (
        check(measure_size, name="sized", params=Size, quick={"size": 1}, timeout_s=9.0),
        check(lambda params, _: Measurement(metrics={"depth": params.depth}), name="deep", params=Depth),
        check(meet, name="group", scope=Scope.GROUP),
        check(skip, name="skipping"),
        check(lambda *_: Measurement(), name="warning", judge=finding_of(Severity.WARNING)),
        check(lambda *_: Measurement(), name="failing", judge=finding_of(Severity.ERROR)),
        check(fail, name="raising"),
        check(lambda *_: Measurement(), name="forgetful", clear=Mock(side_effect=[None, denied()])),
    )


def denied():
    return PermissionError(13, "Permission denied", "/var/lib/muster/forgetful.cleared")


def test_what_a_check_remembers_is_cleared(check_command):
    """In a word; what keeps it from that is said with what to do, and a check that remembers nothing is refused."""
    code, said, problem = check_command("clear", "forgetful")
    assert (code, problem) == (0, "")
    assert said.startswith("forgetful: events until now no longer count from its next run on (data_dir: /")
    code, _, problem = check_command("clear", "forgetful")
    assert (code, problem) == (
        69,
        "muster: cannot clear forgetful: /var/lib/muster/forgetful.cleared: Permission denied; "
        "run this as the agent's user, with its settings (--config FILE)\n",
    )
    code, _, problem = check_command("clear", "sized")
    assert (code, problem) == (
        64,
        "muster: nothing to clear for sized: its findings end when a run no longer has them, at the latest when "
        "the agent has been restarted; checks that can be cleared: forgetful\n",
    )


@pytest.fixture
def found(checks, plugins_with, monkeypatch):
    """What plugins.load finds: a plugin with the checks, two devices, and no other."""
    devices = tuple(Device(index=n, uuid=f"GPU-{n}", model="pretended", simulated=True) for n in range(2))
    made = plugins_with(checks, {"muster_inventory": lambda: Inventory(devices=devices)})
    monkeypatch.setattr(plugins, "load", lambda _config: made)
    monkeypatch.setattr(plugins, "log", Mock())
    monkeypatch.setattr(logs, "configure", lambda _settings: None)  # it would hold on to this test's stderr
    return made


@pytest.fixture
def broken(found):
    """The same with a second plugin that does not load."""

    def load():
        raise ImportError("no module named nvml_of_tomorrow")

    found.add(PluginInfo(name="tomorrow", distribution=None, version=None, status="loaded"), load)
    return found


Muster = Callable[..., tuple[int, str, str]]


@pytest.fixture
def check_command(found, capsys, monkeypatch) -> Muster:
    """Runs `muster check …`; gives exit code, stdout and stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["muster", "check", *arguments])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        output = capsys.readouterr()
        return int(ending.value.code or 0), output.out, output.err

    return call


EXITS = [
    (("sized",), 0),
    (("skipping",), 0),
    (("warning",), 1),
    (("failing",), 2),
    (("raising",), 3),
    (("sized", "warning"), 1),
    (("skipping", "raising", "warning"), 3),
    (("raising", "failing"), 2),
    (("--all",), 2),
]


@pytest.mark.parametrize(("names", "code"), EXITS)
def test_the_exit_code_is_that_of_the_worst_verdict(check_command, names, code):
    """0 for PASS and SKIPPED, 1 for WARN, 2 for FAIL, 3 for UNKNOWN."""
    assert check_command("run", *names)[0] == code


@pytest.mark.parametrize(("names", "code"), [(names, 0 if code == 1 else code) for names, code in EXITS])
def test_a_warning_need_not_fail_what_called(check_command, names, code):
    """With --fail-on fail a WARN is no failure; what could not be tested still is. `warn` changes nothing."""
    assert check_command("run", *names, "--fail-on", "fail")[0] == code
    assert check_command("run", *names, "--fail-on", "warn")[0] == dict(EXITS)[names]


def test_what_to_fail_on_is_one_of_two_words(check_command):
    """Another one is wrong usage, in one line with both."""
    code, out, err = check_command("run", "sized", "--fail-on", "error")
    assert (code, out) == (64, "")
    assert "'warn', 'fail'" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(("name", "code"), [("sized", 69), ("failing", 2)])
def test_a_report_that_cannot_be_written_hides_no_verdict(check_command, monkeypatch, tmp_path, name, code):
    """A disk that has filled up since is told after what was found; only a good verdict gives way to it."""

    def full(*_arguments):
        raise Unavailable("cannot write the report: No space left on device")

    monkeypatch.setattr(files, "write", full)
    told, out, err = check_command("run", name, "--report-dir", str(tmp_path))
    assert (told, out.splitlines()[1].split()[0]) == (code, name)
    assert "muster: cannot write the report: No space left on device\n" in err


def test_json_goes_to_stdout_and_everything_else_to_stderr(check_command):
    """With --json stdout holds one list of runs in the order that was asked for; progress goes to stderr."""
    code, out, err = check_command("run", "warning", "sized", "sized", "--json")
    listing = json.loads(out)
    assert code == 1
    assert listing["next_cursor"] is None
    assert [run["check"] for run in listing["items"]] == ["warning", "sized"]
    assert listing["items"][1]["metrics"] == {"size": 3, "gpus": None, "each": [1.5, None]}
    assert listing["items"][1]["simulated"] is True
    assert "measuring 3" in err


def test_people_get_a_table_with_findings_and_numbers(check_command):
    """Without --json there is a line for each run, then what it found and measured; what is simulated says so."""
    _, out, _ = check_command("run", "warning", "sized")
    header, warning, sized, *details = out.splitlines()
    assert header.split() == ["CHECK", "VERDICT", "TOOK", "FINDINGS"]
    assert warning.split()[:3] == ["warning", "WARN", "(simulated)"]
    assert sized.split()[:2] == ["sized", "PASS"]
    assert "  WARNING throwaway.found on device 0: look at this" in details
    assert "  each = 1.5, -" in details


def test_a_group_check_runs_as_a_group_of_one_node(check_command):
    """A check of scope GROUP gets a rank for every device of this node."""
    code, out, _ = check_command("run", "group", "--json")
    assert code == 0
    assert json.loads(out)["items"][0]["metrics"] == {"world": 2}


PARAMETERS = [
    (("sized",), 3),
    (("sized", "--quick"), 1),
    (("sized", "--quick", "--param", "size=7"), 7),
    (("--all", "--param", "size=8"), 8),
]


@pytest.mark.parametrize(("arguments", "size"), PARAMETERS)
def test_parameters_said_now_go_before_quick_and_that_before_defaults(check_command, arguments, size):
    """--param wins over --quick; with --all a parameter goes to the checks that have it."""
    runs = json.loads(check_command("run", *arguments, "--json")[1])["items"]
    [sized] = [run for run in runs if run["check"] == "sized"]
    assert sized["params"] == {"size": size}


def test_settings_apply(check_command, tmp_path):
    """Parameters and timeouts under [checks.<name>] hold here too, and --quick goes before them."""
    settings = tmp_path / "muster.toml"
    settings.write_text("[checks.sized]\ntimeout_s = 4\nparams = { size = 5 }\n")
    [run] = json.loads(check_command("run", "sized", "--json", "--config", str(settings))[1])["items"]
    assert (run["params"], run["facts"]["timeout_s"]) == ({"size": 5}, 4.0)
    [run] = json.loads(check_command("run", "sized", "--quick", "--json", "--config", str(settings))[1])["items"]
    assert run["params"] == {"size": 1}


def test_expected_gpus_reach_the_check(check_command):
    """--expect-gpus goes before the setting expected_gpus."""
    [run] = json.loads(check_command("run", "sized", "--expect-gpus", "4", "--json")[1])["items"]
    assert run["metrics"]["gpus"] == 4


def test_no_node_has_more_gpus_than_muster_knows(check_command):
    """A number with a zero too many is refused at once, and not by each check in its own way."""
    assert MOST_GPUS == MOST_DEVICES
    code, _, err = check_command("run", "sized", f"--expect-gpus={MOST_DEVICES + 1}")
    assert code == 64
    assert "--expect-gpus" in err


def test_a_value_that_is_json_is_taken_as_json(check_command):
    """Numbers are numbers; what is not JSON is a string."""
    [run] = json.loads(check_command("run", "deep", "--param", "depth=2", "--param", "name=ab c", "--json")[1])["items"]
    assert run["params"] == {"depth": 2, "name": "ab c"}


WRONG = [
    ((), "either name the checks to run, or give --all or --suite (valid: deep,"),
    (("--all", "sized"), "either name the checks"),
    (("size",), "unknown check 'size'; did you mean 'sized'?"),
    (("sized", "--param", "size"), "KEY=VALUE"),
    (("sized", "--param", "sise=1"), "unknown parameter of sized 'sise'; did you mean 'size'? (valid: size)"),
    (("sized", "deep", "--param", "size=1"), "unknown parameter of deep 'size'"),
    (("sized", "--param", "size=many"), "parameter of sized 'size'"),
    (("sized", "--param", "size=0"), "greater than or equal to 1"),
    (("--all", "--param", "weight=1"), "unknown parameter 'weight' (valid: depth, name, size)"),
    (("sized", "--expect-gpus", "-1"), "expect-gpus"),
    (("sized", "--expect-gpu", "1"), "expect-gpu"),
    (("sized", "--config", "/no/such/file"), "/no/such/file"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG)
def test_wrong_usage_is_64_and_says_what_is_valid(check_command, arguments, text):
    """Nothing runs, stdout stays empty, and the message names what was wrong and what would be right."""
    code, out, err = check_command("run", *arguments, "--json")
    assert (code, out) == (64, "")
    assert text in err


def test_list_and_show_describe_checks(check_command):
    """List gives every check by name, show one of them with its parameters; as JSON both are CheckInfo."""
    infos = json.loads(check_command("list", "--json")[1])
    assert infos["next_cursor"] is None
    names = [info["name"] for info in infos["items"]]
    assert names == ["deep", "failing", "forgetful", "group", "raising", "sized", "skipping", "warning"]
    [sized] = [info for info in infos["items"] if info["name"] == "sized"]
    assert json.loads(check_command("show", "sized", "--json")[1]) == sized
    assert sized["params"]["properties"]["size"]["default"] == 3
    assert "How much of it" in check_command("show", "sized")[1]
    assert "a check of the tests" in check_command("list")[1]
    assert check_command("show", "size")[0] == 64


def test_a_plugin_that_failed_is_reported_with_all(broken, check_command):
    """With --all a plugin that did not load is a run of the pseudo check `plugins`; with names it is not."""
    runs = json.loads(check_command("run", "--all", "--json")[1])["items"]
    assert (runs[0]["check"], runs[0]["verdict"]) == ("plugins", "UNKNOWN")
    assert [finding["code"] for finding in runs[0]["findings"]] == ["plugins.failed"]
    code, out, _ = check_command("run", "sized", "--json")
    assert (code, [run["check"] for run in json.loads(out)["items"]]) == (0, ["sized"])


def test_an_unknown_check_may_be_a_failed_plugins(broken, check_command):
    """The refusal of an unknown check names the plugins that failed, as it may be one of theirs."""
    code, _, err = check_command("run", "nvml")
    assert code == 64
    assert "plugins that failed: tomorrow (ImportError: no module named nvml_of_tomorrow)" in err


ENDLESS = """
    import subprocess, sys, time
    from muster import cli, plugins
    from muster.check import Check, Params
    from muster.hookspecs import hookimpl
    from muster.plugins import Plugins
    from muster.wire.messages import PluginInfo

    def measure(params, context):
        subprocess.Popen(["sleep", "600"])
        context.progress("here I am")
        time.sleep(600)

    class Throwaway:
        @hookimpl
        def muster_checks(self):
            return [Check(name="endless", summary="", scope="NODE", params=Params, measure=measure,
                          judge=lambda m, r: [], timeout_s=600)]

    def load(config):
        found = Plugins(config)
        found.add(PluginInfo(name="throwaway", distribution=None, version=None, status="loaded"), Throwaway)
        return found

    plugins.load = load
    sys.argv = ["muster", "check", "run", "endless"]
    cli.main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_and_leaves_nothing(tmp_path, number, code):
    """Ctrl-C and SIGTERM kill the run that goes on; no process and no file is left."""
    program = [sys.executable, "-c", textwrap.dedent(ENDLESS)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert [process.stderr.readline() for _ in range(2)] == ["endless: started\n", "endless: here I am\n"]
        below = psutil.Process(process.pid).children(recursive=True)
        assert below
        process.send_signal(number)
        assert process.wait(timeout=5) == code
    assert psutil.wait_procs(below, timeout=2)[1] == []
    assert list(tmp_path.iterdir()) == []


def test_the_command_does_not_import_torch():
    """Neither torch nor pynvml is imported in the process of the command, nor asyncio's users that cost memory."""
    program = "import sys; import muster_agent.commands.check; print({'torch', 'pynvml', 'aiohttp'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
