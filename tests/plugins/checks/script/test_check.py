"""The checks `script.<name>`, with real executables."""

from importlib.metadata import entry_points

import pytest
from tests.cases import cases

from muster import Config, Needs, Reference
from muster.config import Settings
from muster.errors import SettingsError
from muster.plugins import GROUP, collect_checks, load
from muster_agent.runs.plan_settings import make_plan


@pytest.fixture
def script(tmp_path):
    """Writes an executable with this shell script as its body, and gives its path."""

    def write(body: str, name: str = "check") -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    return write


def configured(**checks):
    """The checks of a node with these scripts, found by entry point, and its settings."""
    config = Config(Settings.model_validate({"plugins": {"script": {"checks": checks}}}))
    return collect_checks(load(config, entry_points(group=GROUP, name="script")))


@pytest.fixture
def run(live, script, bare_context):
    """Runs a script as the check `script.mine`: the measurement and its findings."""

    def carry_out(body: str, references=None, **settings):
        check = configured(mine={"path": script(body), **settings})["script.mine"]
        measurement = check.measure(check.params(), bare_context(check.timeout_s))
        return measurement, check.judge(measurement, references or {})

    return carry_out


def told(findings) -> list[tuple]:
    return [(each.code, each.severity, each.summary) for each in findings]


@pytest.mark.parametrize(
    ("protocol", "exit_code", "expected"),
    [
        ("nagios", 0, []),
        ("nagios", 1, [("script.mine.warning", "WARNING", "said so")]),
        ("nagios", 2, [("script.mine.failed", "ERROR", "said so")]),
        ("nagios", 3, [("script.mine.unknown", "UNKNOWN", "said so")]),
        ("nagios", 4, [("script.mine.unexpected_exit", "UNKNOWN", "exit code 4")]),
        ("npd", 0, []),
        ("npd", 1, [("script.mine.failed", "ERROR", "said so")]),
        ("npd", 2, [("script.mine.unknown", "UNKNOWN", "said so")]),
        ("npd", 3, [("script.mine.unexpected_exit", "UNKNOWN", "exit code 3")]),
    ],
)
def test_exit_codes(run, protocol, exit_code, expected):
    """Each protocol has its own codes; other codes are no evidence."""
    _, findings = run(f"echo said so; exit {exit_code}", protocol=protocol)
    assert told(findings) == expected


def test_a_script_killed_by_a_signal_says_nothing(run):
    """It may have crashed for any reason."""
    _, findings = run("kill -SEGV $$")
    assert told(findings) == [("script.mine.unexpected_exit", "UNKNOWN", "killed by signal 11")]


def test_a_script_without_a_word_is_told_by_its_exit_code(run):
    """The end of stderr is kept as evidence."""
    _, (finding,) = run("echo broken >&2; exit 2")
    assert finding.summary == "exit code 2, without any output"
    assert finding.evidence == {"exit_code": 2, "stderr": "broken"}


def test_performance_data_of_a_nagios_plugin_are_metrics(run):
    """Judged by the plugin itself, and by the operator's references beside it."""
    reference = Reference(check="script.mine", metric="load", fail_above=2, source="a test")
    measurement, findings = run("echo 'WARNING - load | load=3.5;2;5'; exit 1", {"load": reference})
    assert measurement.metrics == {"load": 3.5}
    assert [(code, severity) for code, severity, _ in told(findings)] == [
        ("script.mine.warning", "WARNING"),
        ("script.mine.out_of_bounds", "ERROR"),
    ]


def test_a_list_of_metrics_is_judged_by_device(run):
    """In device order, as everywhere."""
    reference = Reference(check="script.mine", metric="x", warn_above=2, source="a test")
    _, (finding,) = run("""echo '{"metrics": {"x": [1, 3]}}'""", {"x": reference})
    assert (finding.code, finding.device) == ("script.mine.out_of_bounds", 1)


@pytest.mark.parametrize(
    ("exit_code", "also"),
    [(0, []), (2, []), (3, [("script.mine.unknown", "UNKNOWN", "exit code 3, without any output")])],
)
def test_findings_of_a_script_stand_for_its_exit_code(run, exit_code, also):
    """Unless it says something else."""
    report = '{"findings": [{"code": "loose", "summary": "a cable", "severity": "ERROR", "device": 0}]}'
    _, findings = run(f"echo '{report}'; exit {exit_code}")
    assert told(findings) == [("script.mine.loose", "ERROR", "a cable"), *also]


def test_broken_json_does_not_hide_a_failure(run):
    """The exit code counts all the same."""
    _, findings = run("echo '{\"metrics\": 1'; exit 2")
    assert [code for code, *_ in told(findings)] == ["script.mine.garbage", "script.mine.failed"]


def test_a_script_that_never_stops_talking_is_named(run):
    """What it said at first is read, the rest is dropped."""
    measurement, findings = run('echo "OK | a=1"; head -c 5000000 /dev/zero')
    assert measurement.metrics == {"a": 1.0}
    assert told(findings) == [
        ("script.mine.truncated", "UNKNOWN", "printed more than 4 MiB, the rest of which was not read")
    ]


def test_a_script_has_no_input_and_a_known_environment(run, bare_context):
    """Its arguments are given as they are; it runs in a directory of its own."""
    _, (finding,) = run('read line; echo "$1,$line,$MUSTER_NODE,$TMPDIR,$PWD"; exit 1', args=["$(id); a b"])
    scratch = bare_context().scratch
    assert finding.summary == f"$(id); a b,,node-1,{scratch},{scratch}"


def test_a_script_that_hangs_is_ended(run):
    """By the deadline in the settings."""
    _, (finding,) = run("echo started; sleep 600", timeout_s=0.5)
    assert (finding.code, finding.severity, finding.evidence) == (
        "script.mine.timed_out",
        "UNKNOWN",
        {"output": "started"},
    )


@pytest.mark.parametrize(("mode", "code"), [(None, "untrusted"), (0o644, "untrusted"), (0o777, "untrusted")])
def test_a_script_that_changes_after_the_start_is_not_run(script, bare_context, mode, code, tmp_path):
    """The file is missing, no longer executable, or writable by every user."""
    path = script(f"touch {tmp_path}/ran")
    check = configured(mine={"path": path})["script.mine"]
    if mode is None:
        (tmp_path / "check").unlink()
    else:
        (tmp_path / "check").chmod(mode)
    (finding,) = check.judge(check.measure(check.params(), bare_context()), {})
    assert (finding.code, finding.severity) == (f"script.mine.{code}", "UNKNOWN")
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("live")
def test_a_file_that_the_kernel_cannot_run_has_a_name(script, bare_context, tmp_path):
    """Such as one whose interpreter is not installed."""
    path = script("")
    (tmp_path / "check").write_text("#!/nonexistent/python\n", encoding="ascii")
    check = configured(mine={"path": path})["script.mine"]
    (finding,) = check.judge(check.measure(check.params(), bare_context()), {})
    assert (finding.code, finding.severity) == ("script.mine.not_started", "UNKNOWN")


def test_settings_become_the_check(script):
    """A name with a dot can be planned, and set under [checks] like any other."""
    path = script("true")
    checks = configured(
        nhc={"path": path, "protocol": "npd", "interval_s": 300, "timeout_s": 30, "needs": "IDLE_NODE"},
        on_demand={"path": path},
    )
    nhc = checks["script.nhc"]
    assert (nhc.cadence_s, nhc.timeout_s, nhc.needs) == (300, 30, Needs.IDLE_NODE)
    assert {"script.nhc.failed", "script.nhc.timed_out"} <= set(nhc.finds)
    settings = Settings.model_validate({"checks": {"script.on_demand": {"interval_s": 60}}})
    plan = make_plan(checks, settings.checks, complete=True)
    assert (plan["script.nhc"].interval_s, plan["script.on_demand"].interval_s) == (300, 60)


def test_nothing_that_is_run_can_be_sent(script):
    """The check has no parameters."""
    assert configured(mine={"path": script("true")})["script.mine"].params.model_fields == {}


def test_a_script_that_is_not_here_may_be_on_other_nodes(bare_context):
    """All have the same settings, as has the coordinator; where it is run, it is missed."""
    check = configured(nhc={"path": "/nonexistent/nhc"})["script.nhc"]
    (finding,) = check.judge(check.measure(check.params(), bare_context()), {})
    assert (finding.code, finding.severity) == ("script.nhc.untrusted", "UNKNOWN")
    assert finding.summary.endswith("/nonexistent/nhc cannot be examined: No such file or directory")


@cases(
    ("name", "settings", "text"),
    [
        ("mine", {"path": "check"}, r"checks\.mine\.path': must be an absolute path"),
        ("mine", {"path": "/etc"}, "is not an executable file"),
        ("mine", {}, "must be given"),
        ("mine", {"path": "/bin/true", "protocol": "sensu"}, "'nagios' or 'npd'"),
        ("mine", {"path": "/bin/true", "timeout_s": 0}, "greater than 0"),
        ("mine", {"path": "/bin/true", "command": "x"}, "unknown setting"),
        ("a.b", {"path": "/bin/true"}, "match pattern"),
    ],
)
def test_wrong_settings_are_refused_at_start(name, settings, text):
    """With the key, what was wrong and what would be right."""
    with pytest.raises(SettingsError, match=text):
        configured(**{name: settings})
