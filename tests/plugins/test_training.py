"""The check `training`."""

import pytest

from muster import Measurement
from muster.model import Json
from muster.references import applicable, shipped
from muster_plugins.training import judge

FACTS: Json = {"devices": [0, 1], "missing": []}


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"loss_last": [0.9, 0.9], "loss_ratio": [0.4, 0.7]}, []),
        ({"loss_last": [0.9, 2.0], "loss_ratio": [0.4, 0.71]}, [("training.loss_not_falling", "ERROR", 1)]),
        ({"loss_last": [None, 0.9], "loss_ratio": [None, 0.4]}, [("training.loss_not_finite", "ERROR", 0)]),
    ],
)
def test_judgement(metrics, expected):
    """A loss that does not fall, or is no number, names the device."""
    findings = judge(Measurement(metrics=metrics, facts=FACTS), applicable(shipped(), "training", FACTS))
    assert [(each.code, each.severity, each.device) for each in findings] == expected


def test_every_device_learns_the_same(torch_child, codes, simulated_node):
    """All start from the same weights and see the same samples, so equal devices end with equal losses."""
    answer = torch_child.ask("training", simulated_node(devices=2))
    assert codes(answer) == []
    first, second = answer["metrics"]["loss_last"]
    assert first == second < 0.7 * answer["metrics"]["loss_first"][0]
    assert answer["facts"]["simulated"] is True


def test_samples_are_counted_once(torch_child):
    """Samples per second are those of one device: its batch over the time of its step."""
    answer = torch_child.ask("training", params={"device": "cpu", "batch_size": 32, "steps": 10})
    (step_time_s,), (rate,) = answer["metrics"]["step_time_s"], answer["metrics"]["samples_per_s"]
    assert rate == pytest.approx(32 / step_time_s)


def test_no_gpu_where_none_is_expected_is_skipped(torch_child):
    """A machine without GPUs is no fault, and no pass either."""
    assert torch_child.ask("training") == {"skipped": "no GPU here, none expected"}
