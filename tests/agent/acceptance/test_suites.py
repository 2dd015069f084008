"""Which checks a suite runs, with which parameters."""

import pytest

from muster.check import Params, Scope
from muster.config import CheckSettings, Config, Settings, SuiteSettings
from muster.errors import Refused
from muster.model import Measurement
from muster.plugins import collect_checks, load
from muster.wire.messages import PluginInfo
from muster_agent.acceptance.suites import AcceptanceRequest, plan_of, suites

BROKEN = PluginInfo(name="broken", distribution=None, version=None, status="failed", error="no such module")


class Size(Params):
    size: int = 3


@pytest.fixture
def checks(check):
    made = [
        check(lambda *_: Measurement(), name="sized", params=Size, quick={"size": 1}),
        check(lambda *_: Measurement(), name="group", scope=Scope.GROUP),
    ]
    return {one.name: one for one in made}


def asked(*names, every=False, suite=None, quick=False, **params):
    return AcceptanceRequest(names=names, every=every, suite=suite, quick=quick, params=params)


def with_suite(*steps, **fields):
    return Settings(suites={"mine": SuiteSettings.model_validate({"steps": steps, **fields})})


def test_a_suite_of_the_settings_is_planned_in_its_order(checks):
    """A step may come twice; its own parameters go before the quick ones, these before the settings' of the check."""
    settings = with_suite(
        {"section": "COMPUTE", "check": "sized", "quick": True},
        {"section": "COLLECTIVE", "check": "group"},
        {"section": "COMPUTE", "check": "sized", "quick": True, "params": {"size": 9}},
        {"section": "ENV", "check": "sized"},
        repeat_for_s=60,
    )
    settings = settings.model_copy(update={"checks": {"sized": CheckSettings(params={"size": 5}, timeout_s=2.0)}})
    plan = plan_of(asked(suite="mine"), settings, checks, [BROKEN])
    assert [(step.section, step.selected.params) for step in plan.steps if step.selected.check.name == "sized"] == [
        ("COMPUTE", Size(size=1)),
        ("COMPUTE", Size(size=9)),
        ("ENV", Size(size=5)),
    ]
    assert [step.selected.check.name for step in plan.steps] == ["sized", "group", "sized", "sized"]
    assert (plan.suite, plan.repeat_for_s, plan.failed) == ("mine", 60.0, (BROKEN,))
    assert plan.steps[0].selected.timeout_s == 2.0


def test_every_suite_that_comes_with_muster_can_be_planned():
    """Each of its checks exists and takes its parameters."""
    found = load(Config(Settings()))
    checks = collect_checks(found)
    assert not found.failed
    names = suites(Settings())
    assert {"prolog", "preflight", "quick", "full", "burn-in"} <= names.keys()
    for name in names:
        assert plan_of(asked(suite=name), Settings(), checks, []).steps


def test_the_settings_replace_a_suite_of_the_same_name(checks):
    """And leave the others as they are."""
    mine = SuiteSettings.model_validate({"steps": [{"section": "ENV", "check": "sized"}]})
    settings = Settings(suites={"quick": mine})
    assert suites(settings)["quick"] == mine
    assert suites(settings)["full"] == suites(Settings())["full"]


WRONG = [
    (asked(), "either name the checks to run, or give --all or --suite"),
    (asked("sized", suite="mine"), "either name the checks to run, or give --all or --suite"),
    (asked(every=True, suite="mine"), "either name the checks to run, or give --all or --suite"),
    (asked(suite="mine", size=3), "--param and --quick do not go with --suite"),
    (asked(suite="mine", quick=True), "--param and --quick do not go with --suite"),
    (asked(suite="mime"), "unknown suite 'mime'; did you mean 'mine'"),
]


@pytest.mark.parametrize(("wish", "reason"), WRONG)
def test_what_cannot_be_asked_for_is_refused(checks, wish, reason):
    """The message says what would be right."""
    with pytest.raises(Refused, match=reason):
        plan_of(wish, with_suite({"section": "ENV", "check": "sized"}), checks, [])


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"section": "ENV", "check": "size"}, r"suite mine, step 1: unknown check 'size'; .*broken \(no such module\)"),
        ({"section": "ENV", "check": "sized", "params": {"sise": 1}}, "suite mine, step 1: unknown parameter of sized"),
    ],
)
def test_a_step_that_cannot_be_is_refused(checks, step, reason):
    """The message names the suite and the step."""
    with pytest.raises(Refused, match=reason):
        plan_of(asked(suite="mine"), with_suite(step), checks, [BROKEN])


def test_the_digest_tells_other_steps_or_parameters_apart(checks):
    """All processes of a job must run the same."""
    step = {"section": "ENV", "check": "sized"}
    plans = [
        plan_of(asked(suite="mine"), with_suite(*steps), checks, [])
        for steps in ([step], [step, step], [{**step, "params": {"size": 4}}], [{**step, "section": "TRAIN"}])
    ]
    digests = [plan.digest for plan in plans]
    assert len(set(digests[:3])) == 3
    assert digests[3] == digests[0]


def test_checks_by_name_and_all_are_plans_too(checks):
    """With names only what they name is told of, so plugins that failed are not."""
    named = plan_of(asked("sized", "group", "sized", quick=False), Settings(), checks, [BROKEN])
    assert [step.selected.check.name for step in named.steps] == ["sized", "group"]
    assert (named.steps[0].selected.params, named.failed) == (Size(size=3), ())
    every = plan_of(asked(every=True, size=7), Settings(), checks, [BROKEN])
    assert [step.selected.check.name for step in every.steps] == ["group", "sized"]
    assert (every.steps[1].selected.params, every.failed) == (Size(size=7), (BROKEN,))
