"""Conditions of other programs become findings of the node, as the settings say."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.cases import cases

from muster import Config, Context, Measurement, Skip
from muster.config import Settings
from muster.errors import SettingsError
from muster.plugins import load
from muster_plugins.schedulers.kubernetes import rbac
from muster_plugins.schedulers.kubernetes.conditions_reading import judge
from muster_plugins.schedulers.kubernetes.node_conditions import FINDS
from muster_plugins.schedulers.kubernetes.plugin import muster_checks
from muster_plugins.shared.no_params import NoParams

ACCOUNT = "system:serviceaccount:muster:muster-agent"
CONTEXT = cast("Context", SimpleNamespace())
WANTED = {"KernelDeadlock": "ERROR", "ReadonlyFilesystem": "ERROR", "FrequentKubeletRestart": "WARNING"}
WELL = dict.fromkeys(WANTED, ("False", "all is well"))


def judged(conditions, **facts):
    """Code, severity and list of each finding."""
    told = [{"type": kind, "status": status, "message": message} for kind, (status, message) in conditions.items()]
    reading: Any = {"wanted": WANTED, "conditions": told, **facts}
    found = judge(Measurement(metrics={}, facts=reading), {})
    return [(each.code.rpartition(".")[2], each.severity.value, each.evidence["listed"]) for each in found]


@cases(
    ("conditions", "expected"),
    [
        (WELL, []),
        (
            WELL | {"KernelDeadlock": ("True", "task docker:1 blocked")},
            [("problem", "ERROR", ["KernelDeadlock (task docker:1 blocked)"])],
        ),
        (
            WELL | {"FrequentKubeletRestart": ("True", "")},
            [("problem", "WARNING", ["FrequentKubeletRestart"])],
        ),
        (WELL | {"KernelDeadlock": ("Unknown", "")}, [("unknown", "UNKNOWN", ["KernelDeadlock"])]),
        ({}, [("unknown", "UNKNOWN", [*WANTED])]),
        (
            dict.fromkeys(WANTED, ("True", "")),
            [
                ("problem", "ERROR", ["KernelDeadlock", "ReadonlyFilesystem"]),
                ("problem", "WARNING", ["FrequentKubeletRestart"]),
            ],
        ),
    ],
)
def test_a_condition_is_judged_as_the_settings_say(conditions, expected):
    """True is a problem; one that nobody has written is not taken for healthy."""
    assert judged(conditions) == expected


def test_a_long_message_is_cut():
    """A condition's message may have 32,768 characters."""
    ((_, _, (told,)),) = judged(WELL | {"KernelDeadlock": ("True", "x" * 32768)})
    assert len(told) < 300


def test_a_server_that_does_not_answer_says_nothing_about_the_node():
    """The reason is in the finding."""
    assert judged({}, unanswered="no answer") == [("no_answer", "UNKNOWN", ["no answer"])]


@pytest.fixture
def look(standin):
    """Measures and judges on n1, as an agent with the permissions that are generated."""
    role, *_ = rbac.agent_manifests()
    standin.add_user(ACCOUNT, role)
    account = {"api": standin.url, "service_account": str(standin.service_account(ACCOUNT))}
    table = {"enabled": True, **account, "conditions": {"MemoryPressure": "WARNING"}}
    (check,) = muster_checks(Config(Settings.model_validate({"node": "n1", "plugins": {"kubernetes": table}})))

    async def make():
        # In a thread, as the stand-in answers from this one.
        measured = await asyncio.to_thread(check.measure, NoParams(), CONTEXT)
        return [(each.code, each.severity.value) for each in check.judge(measured, {})]

    return make


async def test_the_conditions_of_the_own_node_are_read(standin, client, look):
    """With the right that the shipped manifests grant. Other conditions do not count."""
    assert await look() == [("node_conditions.no_answer", "UNKNOWN")]
    standin.add_node("n1")
    assert await look() == []
    pressed = {"status": {"conditions": [{"type": "MemoryPressure", "status": "True", "message": "little memory"}]}}
    content_type = "application/strategic-merge-patch+json"
    await client.ask("PATCH", "/api/v1/nodes/n1/status", pressed, content_type=content_type)
    assert await look() == [("node_conditions.problem", "WARNING")]


def test_nothing_is_asked_unless_the_settings_name_a_condition():
    """Then it does not run in the background, and is skipped on demand."""
    (check,) = muster_checks(Config(Settings()))
    assert (check.cadence_s, check.resident) == (None, False)
    with pytest.raises(Skip):
        check.measure(NoParams(), CONTEXT)


@cases("conditions", [{"MusterHealthy": "ERROR"}, {"Ready": "ERROR"}, {"KernelDeadlock": "FATAL"}])
def test_wrong_settings_are_refused(conditions):
    """Our own conditions would feed on themselves; Ready has the other polarity."""
    table = {"plugins": {"kubernetes": {"conditions": conditions}}}
    with pytest.raises(SettingsError, match=r"plugins\.kubernetes\.conditions"):
        load(Config(Settings.model_validate(table)))


def test_every_code_is_one_that_a_policy_can_name():
    """As the check lists them."""
    (check,) = muster_checks(Config(Settings()))
    assert check.finds == FINDS
    assert all(code.startswith("node_conditions.") for code in FINDS)
