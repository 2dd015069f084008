"""Which settings of the actor are refused, at the start and with what would be right."""

import pytest
from tests.cases import cases

from muster.config import Config, Settings
from muster.errors import SettingsError
from muster_plugins.schedulers.kubernetes.plugin import muster_configure

WRONG = {
    "an effect that evicts": ({"taint": "a:NoExecute"}, "taint", "others evict pods"),
    "a taint without an effect": ({"taint": "a=b"}, "taint", "must be key"),
    "a taint with two values": ({"taint": "a=b=c:NoSchedule"}, "taint", "must be key"),
    "a startup taint with an effect": ({"startup_taint": "a:NoSchedule"}, "startup_taint", "must be a key"),
    "a label without a value": ({"opt_out": "a"}, "opt_out", "must be key=value"),
    "a hint without a value": ({"drain_hint": "a"}, "drain_hint", "must be key=value"),
    "a prefix with a slash": ({"prefix": "a/b"}, "prefix", "pattern"),
    "no time": ({"timeout_s": 0}, "timeout_s", "greater than 0"),
    "too little for what is under way": ({"requests_per_s": 5}, "requests_per_s", "greater than or equal to 20"),
    "a context of nothing": ({"context": "prod"}, "actor", "set kubeconfig, too"),
    "something else": ({"cordon": True}, "cordon", "unknown"),
}


def configure(table):
    muster_configure(Config(Settings.model_validate({"plugins": {"kubernetes": {"actor": table}}})))


@cases("case", WRONG.values(), ids=WRONG)
def test_wrong_settings_are_refused(case):
    """By their name."""
    table, key, said = case
    with pytest.raises(SettingsError, match=r"plugins\.kubernetes\.actor") as raised:
        configure(table)
    assert key in str(raised.value)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "table",
    [
        {"taint": ""},
        {"taint": "example.com/bad=gpu:PreferNoSchedule"},
        {"kubeconfig": "~/.kube/config", "context": "prod"},
        {"drain_hint": "example.com/drain=soon", "opt_out": "keep=", "prefix": "example.com"},
    ],
)
def test_right_settings_are_taken(table):
    """As the documents say."""
    configure(table)
