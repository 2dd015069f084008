"""What may stand in `[plugins.webhook]`, and which targets are told of what."""

import pytest
from tests.cases import cases

from muster.config import Config, Settings
from muster.errors import SettingsError
from muster.model import ServiceState
from muster.transition import Transition
from muster_plugins.notifiers.webhook.settings import WebhookSettings, WebhookTarget

SECRET_URL = "https://hooks.slack.com/services/T0/B0/do-not-show"


def configured(settings) -> WebhookSettings:
    return Config(Settings.model_validate({"plugins": {"webhook": settings}})).plugin("webhook", WebhookSettings)


@cases(
    "target",
    [
        {"url": SECRET_URL, "format": "slack"},
        {"url": "https://ops.example:8443/x?y=z", "secret_file": "/s"},
        {"url": "https://events.pagerduty.com/v2/enqueue", "format": "pagerduty", "routing_key_file": "/r"},
        {"url": "http://127.0.0.1:9093/api/v2/alerts", "format": "alertmanager"},
        {"url": "http://[::1]:9093/api/v2/alerts", "format": "alertmanager"},
        {"url": "http://alertmanager:9093/api/v2/alerts", "format": "alertmanager", "plain_http": True},
    ],
)
def test_right_settings(target):
    """Every format with what it needs; plain HTTP on this host, or where the operator says so."""
    assert configured({"targets": {"ops": target}}).targets["ops"].url.get_secret_value() == target["url"]


@cases(
    ("target", "text"),
    [
        ({}, r"targets\.ops\.url': must be given"),
        ({"url": "ftp://h/x", "format": "slack"}, "url must be https://"),
        ({"url": "https:///x", "format": "slack"}, "url must be https://"),
        ({"url": "https://h:0/x", "format": "slack"}, "url must be https://"),
        ({"url": "https://h:70000/x", "format": "slack"}, "out of range"),
        ({"url": "https://[::/x", "format": "slack"}, "Invalid IPv6 URL"),
        ({"url": "https://a..b/x", "format": "slack"}, "neither the name nor the address"),
        ({"url": "https://hooks.exam ple/x", "format": "slack"}, "neither the name nor the address"),
        ({"url": "https://me:secret@h/x", "format": "slack"}, "set token_file"),
        ({"url": "http://h/x", "format": "slack"}, "plain_http = true"),
        ({"url": "https://h"}, "'generic' needs secret_file"),
        ({"url": "https://h", "format": "pagerduty"}, "'pagerduty' needs routing_key_file"),
        ({"url": "https://h", "format": "slack", "secret_file": "/s"}, "secret_file is for format = 'generic' only"),
        ({"url": "https://h", "secret_file": "/s", "routing_key_file": "/r"}, "for format = 'pagerduty' only"),
        ({"url": "https://h", "format": "teams"}, "'generic', 'slack', 'pagerduty' or 'alertmanager'"),
        ({"url": "https://h", "format": "slack", "states": []}, r"targets\.ops\.states"),
        ({"url": "https://h", "format": "slack", "states": ["LOST"]}, r"states\.0'.*'CORDONED'"),
        ({"url": "https://h", "format": "slack", "timeout_s": 10}, "less than or equal to 9"),
        ({"url": "https://h", "format": "slack", "retries": 3}, "unknown setting"),
    ],
)
def test_wrong_settings_are_refused_at_start(target, text):
    """With the key, what was wrong and what would be right."""
    with pytest.raises(SettingsError, match=text):
        configured({"targets": {"ops": target}})


def test_a_target_has_a_name_that_people_can_read():
    """It stands in place of the URL wherever the target is spoken of."""
    with pytest.raises(SettingsError, match="match pattern"):
        configured({"targets": {"a b": {"url": SECRET_URL, "format": "slack"}}})


@pytest.mark.parametrize(
    "wrong", [{"states": ["LOST"]}, {"format": "generic"}, {"retries": 3}, {"url": "ftp:do-not-show"}]
)
def test_no_error_shows_a_url(wrong):
    """That of a channel is all that one needs to write there."""
    with pytest.raises(SettingsError) as refused:
        configured({"targets": {"ops": {"url": SECRET_URL, "format": "slack", **wrong}}})
    assert "do-not-show" not in str(refused.value)


@pytest.mark.parametrize("targets", [SECRET_URL, {"ops": SECRET_URL}, [SECRET_URL]])
def test_a_url_in_place_of_a_table_is_not_shown(targets):
    """The error says what should stand there."""
    with pytest.raises(SettingsError, match="targets must be tables") as refused:
        configured({"targets": targets})
    assert "do-not-show" not in str(refused.value)


def test_settings_that_are_shown_show_no_url():
    """Neither as text nor as JSON."""
    settings = configured({"targets": {"ops": {"url": SECRET_URL, "format": "slack"}}})
    assert "do-not-show" not in repr(settings) + settings.model_dump_json()


@cases(
    ("states", "before", "after", "told"),
    [
        (None, "IN_SERVICE", "CORDONED", True),
        (None, "IN_SERVICE", "HELD", True),
        (None, "PROBATION", "IN_SERVICE", True),
        (None, "CORDONED", "PROBATION", False),
        (None, "ACCEPTING", "IN_SERVICE", False),
        (None, "ACCEPTING", "CORDONED", True),
        (["ACCEPTING", "IN_SERVICE"], "ACCEPTING", "IN_SERVICE", True),
        (["PROBATION"], "CORDONED", "PROBATION", True),
        (["PROBATION"], "IN_SERVICE", "CORDONED", False),
    ],
)
def test_a_target_is_told_of_its_states(states, before, after, told):
    """Unless set otherwise: what somebody should look after, and its end, but not each new node that is accepted."""
    chosen = {} if states is None else {"states": states}
    target = WebhookTarget.model_validate({"url": SECRET_URL, "format": "slack", **chosen})
    transition = Transition(
        id="t1", node="n1", before=ServiceState(before), after=ServiceState(after), reason="a test", at=0
    )
    assert target.wants(transition) is told
