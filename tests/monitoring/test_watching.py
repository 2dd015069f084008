"""A real Prometheus scrapes real parts of muster, evaluates the rules, and tells a real Alertmanager."""

import json
import subprocess

from tests.cases import cases
from tests.monitoring.conftest import BROKEN, Watched
from tests.waiting import wait_for


def test_an_alert_reaches_alertmanager(watched: Watched):
    """A device of NVML's stub fails, its node is FAILED, and the alert names the node and where to read on."""
    command = ["amtool", f"--alertmanager.url=http://{watched.alertmanager}", "alert", "query", "--output=json"]

    def received():
        done = subprocess.run([*command, "MusterNodesFailed"], capture_output=True, check=True, timeout=60)
        return json.loads(done.stdout)

    (alert,) = wait_for(received, "the alert")
    assert alert["labels"]["severity"] == "warning"
    assert alert["labels"]["instance"] == watched.coordinator
    assert alert["annotations"]["summary"].startswith(f"Failed nodes: 1, such as {BROKEN} (")
    assert alert["annotations"]["runbook_url"].endswith("/alerts.html#musternodesfailed")
    assert alert["status"]["state"] == "active"
    assert [receiver["name"] for receiver in alert["receivers"]] == ["tickets"]


def test_other_alerts_do_not_fire(watched: Watched):
    """All rules were evaluated on what was scraped, without an error."""
    (group,) = watched.prometheus.get("rules", type="alert")["groups"]
    assert [rule["name"] for rule in group["rules"] if rule["health"] != "ok"] == []
    assert {rule["name"] for rule in group["rules"] if rule["state"] == "firing"} == {"MusterNodesFailed"}


def test_scrapes_need_the_token(watched: Watched):
    """All targets are up, with the token that the guide says to use."""

    def scraped():
        targets = watched.prometheus.get("targets", state="active")["activeTargets"]
        return None if any(target["health"] == "unknown" for target in targets) else targets

    # Prometheus spreads the first scrapes of its targets over an interval.
    targets = wait_for(scraped, "a scrape of every target")
    assert {target["health"] for target in targets} == {"up"}, targets


@cases(
    ("alert", "severity", "receiver"),
    [
        ("MusterBrokerAway", "critical", "pager"),
        ("MusterNodesFailed", "warning", "tickets"),
        ("DiskFull", "critical", "tickets"),
    ],
)
def test_alerts_go_where_the_guide_says(watched: Watched, alert, severity, receiver):
    """What is critical about muster goes to the pager."""
    command = ["amtool", f"--alertmanager.url=http://{watched.alertmanager}", "config", "routes", "test"]
    labels = [f"alertname={alert}", f"severity={severity}"]
    done = subprocess.run([*command, *labels], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == receiver
