"""Each of these runs real processes: a run ends as it should, whatever its check does, and leaves nothing behind."""

import os
from pathlib import Path

import pytest

from muster.check import Params, Skip
from muster.model import Device, Json, Measurement, Severity, Verdict
from muster.references import Reference, judge_value


class Size(Params):
    n: int = 3


async def test_a_run_measures_judges_and_reports(running, check):
    """The Run holds metrics, facts, params and what judge found with the reference that applies to the facts."""

    def measure(params, context):
        return Measurement(metrics={"speed": params.n, "odd": float("nan")}, facts={"node": context.node})

    def judge(measurement, references):
        return judge_value(measurement.metrics["speed"], references.get("speed"), code="throwaway.slow")

    rows = tuple(
        Reference(check="throwaway", metric="speed", fail_below=10, source="here", when={"node": node})
        for node in ("node-1", "elsewhere")
    )
    device = Device(index=0, uuid="GPU-0", model="pretended", simulated=True)
    slow = check(measure, judge=judge, params=Size)
    async with running(slow, references=rows, devices=(device,)) as runs:
        ended = await runs.run(slow, run="run-7", cause="me")
    run = ended.run
    assert (run.id, run.node, run.check, run.cause, run.simulated) == ("run-7", "node-1", "throwaway", "me", True)
    assert run.verdict is Verdict.FAIL
    assert [finding.code for finding in run.findings] == ["throwaway.slow"]
    assert run.metrics == {"speed": 3, "odd": None}
    assert run.params == {"n": 3}
    assert [rank.rank for rank in ended.ranks] == [0]


async def test_what_no_reference_judges_is_said(running, check):
    """A note that names what should be judged, was measured and has no reference; nothing is made up for it."""

    def measure(_params, _context):
        return Measurement(metrics={"speed": 1.0, "each": [None, 2.0], "known": 3.0, "empty": [None], "other": 4.0})

    row = Reference(check="throwaway", metric="known", fail_below=1, source="here")
    judged = ("speed", "each", "known", "empty", "absent")
    silent = check(measure, judged=judged)
    async with running(silent, references=(row,)) as runs:
        run = (await runs.run(silent)).run
    (finding,) = run.findings
    assert (run.verdict, finding.code, finding.severity) == (Verdict.PASS, "run.not_judged", Severity.INFO)
    assert finding.evidence == {"metrics": ["speed", "each"]}


async def test_a_check_brings_its_own_references(running, check):
    """They judge where the operator has none, and are no reason to say that one is missing."""

    def measure(_params, _context):
        return Measurement(metrics={"speed": 1.0, "heat": 1.0})

    def judge(_measurement, references):
        return judge_value(1.0, references["speed"], code="throwaway.slow")

    own = tuple(Reference(check="throwaway", metric=name, fail_below=2, source="own") for name in ("speed", "heat"))
    judging = check(measure, judge=judge, judged=("speed", "heat"), references=own)
    async with running(judging) as runs:
        (found,) = (await runs.run(judging)).run.findings
    assert (found.code, found.evidence["source"]) == ("throwaway.slow", "own")
    operator = Reference(check="throwaway", metric="speed", fail_below=0, source="operator")
    async with running(judging, references=(operator,)) as runs:
        assert (await runs.run(judging)).run.findings == ()


def test_own_references_are_for_the_check(check):
    """A copied row with the name of another check would never apply."""
    row = Reference(check="other", metric="speed", fail_below=2, source="own")
    with pytest.raises(ValueError, match="check throwaway: references must be for throwaway, not for other"):
        check(lambda _params, _context: Measurement(), references=(row,))


async def test_a_skipped_run_has_nothing_to_judge(running, check):
    """Where nothing was measured, nothing is missing."""

    def measure(_params, _context):
        raise Skip("nothing here")

    skipping = check(measure, judged=("speed",))
    async with running(skipping) as runs:
        run = (await runs.run(skipping)).run
    assert [finding.code for finding in run.findings] == ["run.skipped"]


async def test_the_context_tells_about_the_surroundings(running, check):
    """A check sees node, devices, expected GPUs, its deadline and an empty scratch directory that is removed."""

    def measure(_params, context):
        (context.scratch / "file").write_text("x")
        context.progress("half way")
        facts: Json = {
            "scratch": str(context.scratch),
            "files": [path.name for path in context.scratch.iterdir()],
            "around": [context.node, len(context.devices), context.expected_gpus, context.timeout_s],
            "stdin": str(Path("/proc/self/fd/0").readlink()),
        }
        return Measurement(facts=facts)

    looking = check(measure)
    device = Device(index=0, uuid="GPU-0", model="pretended")
    async with running(looking, devices=(device,), expected_gpus=2) as runs:
        ended = await runs.run(looking, timeout_s=7.0)
    assert ended.run.verdict is Verdict.PASS
    assert ended.run.facts["around"] == ["node-1", 1, 2, 7.0]
    assert ended.run.facts["files"] == ["file"]
    assert ended.run.facts["stdin"] == "/dev/null"
    assert not Path(ended.run.facts["scratch"]).parent.exists()
    assert runs.progress == ["half way"]


@pytest.mark.parametrize("resident", [False, True])
async def test_without_room_for_a_scratch_directory_the_run_fails_and_nothing_else(running, check, resident):
    """As on a disk that is full; with room again, the next run is as good as any."""
    looking = check(lambda _params, _context: Measurement(), resident=resident)
    async with running(looking) as runs:
        runs.launcher.scratch.rmdir()
        runs.launcher.scratch.write_text("in the way")
        assert [finding.code for finding in (await runs.run(looking)).run.findings] == ["run.raised"]
        runs.launcher.scratch.unlink()
        assert (await runs.run(looking)).run.verdict is Verdict.PASS


async def test_plugins_prepare_the_run_and_one_that_cannot_is_named(running, check):
    """muster_prepare_run is called in the child; when it raises, the run measures but is UNKNOWN."""

    def prepare(context):
        os.environ["PREPARED"] = context.node
        raise ValueError("no such thing")

    looking = check(lambda _params, _context: Measurement(facts={"prepared": os.environ["PREPARED"]}))
    async with running(looking, hooks={"muster_prepare_run": prepare}) as runs:
        ended = await runs.run(looking)
    assert ended.run.facts == {"prepared": "node-1"}
    assert ended.run.verdict is Verdict.UNKNOWN
    assert [finding.code for finding in ended.run.findings] == ["plugins.failed"]
    assert "no such thing" in ended.run.findings[0].summary
    assert "PREPARED" not in os.environ
