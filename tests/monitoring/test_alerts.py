"""Each alert rule fires when it must and only then: promtool evaluates the rules on synthetic series."""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "daemonset" / "components" / "monitoring" / "alerts.yaml"
RUNBOOKS = ROOT / "docs" / "how-to" / "alerts.md"
GUIDE = (ROOT / "docs" / "how-to" / "monitoring.md").read_text(encoding="utf-8")
INSTANCE = {"instance": "coordinator:8787", "job": "muster-coordinator"}

Series = dict[str, float]
"""Values that stay the same, by series without the labels of the instance."""

HEALTHY: Series = {
    'muster_nodes{health="HEALTHY",service="IN_SERVICE"}': 100,
    'muster_nodes{health="FAILED",service="CORDONED"}': 0,
    "muster_leads": 1,
    "muster_nodes_lost": 0,
    "muster_quarantine_away": 7,
    "muster_quarantine_limit": 10,
    'muster_quarantine_info{mode="enforce"}': 1,
    "muster_quarantine_held": 0,
    "muster_quarantine_frozen": 0,
    'muster_quarantine_alarms{kind="PERSON"}': 0,
    'muster_actions_failing{actor="slurm"}': 0,
    'muster_actor_works{actor="slurm"}': 1,
    "muster_broker_connected": 1,
    "muster_overloaded": 0,
    "muster_backlog_age_seconds": 2,
    "muster_store_bytes": 7e9,
    "muster_store_max_bytes": 10e9,
    "muster_store_days_left": 30,
    'muster_nodes_untested{days="30"}': 10,
    'muster_finding_nodes{code="plugins.failed"}': 0,
    "muster_plugins_failed": 0,
    "muster_nodes_unheard": 0,
    'muster_build_info{version="1",python="3.13"}': 1,
    "up": 1,
}
"""A fleet in which no alert fires: each value is near the one at which its alert does."""


@dataclass(frozen=True)
class Case:
    """What differs from a healthy fleet (None: there is no such series) when an alert fires, and what it says then."""

    alert: str
    differs: dict[str, float | None]
    summary: str
    labels: dict[str, str] = field(default_factory=dict)
    severity: str = "warning"
    is_without_instance: bool = False


CASES = [
    Case(
        "MusterNodesFailed",
        {
            'muster_nodes{health="FAILED",service="CORDONED"}': 1,
            'muster_nodes{health="FAILED",service="IN_SERVICE"}': 1,
            'muster_bad_node{node="n7",health="FAILED",service="CORDONED"}': 1,
        },
        "Failed nodes: 2, such as n7 (CORDONED)",
    ),
    Case(
        "MusterNodesLost",
        {"muster_nodes_lost": 1, 'muster_bad_node{node="n8",health="UNKNOWN",lost="true"}': 1},
        "Silent nodes: 1, such as n8",
    ),
    Case(
        "MusterNodesHeld",
        {"muster_quarantine_held": 3},
        "Faulty nodes that stay in service because the budget is used up: 3",
        severity="critical",
    ),
    Case("MusterBudgetNearlyUsed", {"muster_quarantine_away": 8}, "Nodes away: 8, at least 80% of the budget"),
    Case(
        "MusterDrainingFrozen",
        {"muster_quarantine_frozen": 1},
        "Draining is frozen. Causes that many nodes share: 1",
        severity="critical",
    ),
    Case(
        "MusterActionsFailing",
        {'muster_actions_failing{actor="slurm"}': 2},
        "slurm does not carry out what muster decides",
        {"actor": "slurm"},
        "critical",
    ),
    Case(
        "MusterActionsFailing",
        {'muster_actor_works{actor="slurm"}': 0},
        "slurm does not carry out what muster decides",
        {"actor": "slurm"},
        "critical",
    ),
    Case(
        "MusterNodeNeedsPerson",
        {'muster_quarantine_alarms{kind="PERSON"}': 1},
        "Nodes that stay out of service until a person releases them: 1",
        {"kind": "PERSON"},
    ),
    Case(
        "MusterBrokerAway",
        {"muster_broker_connected": 0},
        "The coordinator has no connection to the broker",
        severity="critical",
    ),
    Case("MusterCoordinatorOverloaded", {"muster_overloaded": 1}, "The coordinator cannot take what the agents send"),
    Case(
        "MusterCoordinatorOverloaded",
        {"muster_backlog_age_seconds": 61},
        "The coordinator cannot take what the agents send",
    ),
    Case(
        "MusterDatabaseNearlyFull",
        {"muster_store_bytes": 8.1e9},
        "The database is nearly as large as it may be (store.max_gb)",
    ),
    Case(
        "MusterDatabaseNearlyFull",
        {"muster_store_days_left": 2.5},
        "The database is nearly as large as it may be (store.max_gb)",
    ),
    Case(
        "MusterSweepCoverageOld",
        {'muster_nodes_untested{days="30"}': 11},
        "Nodes that no sweep has tested for 30 days: 11",
    ),
    Case(
        "MusterPluginFailed",
        {'muster_finding_nodes{code="plugins.failed"}': 4},
        "Nodes on which plugins do not load: 4",
        {"code": "plugins.failed"},
    ),
    Case("MusterPluginFailed", {"muster_plugins_failed": 1}, "Plugins of the coordinator that do not load: 1"),
    Case(
        "MusterAgentsNotReporting",
        {"muster_nodes_unheard": 5},
        "Nodes that a scheduler keeps out and from which no agent reports: 5",
    ),
    Case(
        "MusterNobodyLeads",
        {**dict.fromkeys(HEALTHY), "up": 1, "muster_leads": 0},
        "All coordinators stand by, and none leads",
        severity="critical",
        is_without_instance=True,
    ),
    Case(
        "MusterCoordinatorAbsent",
        {**dict.fromkeys(HEALTHY), "up": 0},
        "No coordinator answers at coordinator:8787",
        severity="critical",
    ),
    Case(
        "MusterCoordinatorAbsent",
        dict.fromkeys(HEALTHY),
        "No coordinator answers",
        severity="critical",
        is_without_instance=True,
    ),
]


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def input_series(differs: dict[str, float | None]) -> list[dict[str, str]]:
    own = ",".join(f'{name}="{value}"' for name, value in INSTANCE.items())
    values = {series: value for series, value in {**HEALTHY, **differs}.items() if value is not None}
    return [{"series": with_labels(series, own), "values": f"{value}x120"} for series, value in values.items()]


def with_labels(series: str, labels: str) -> str:
    return f"{series[:-1]},{labels}}}" if series.endswith("}") else f"{series}{{{labels}}}"


def unit_test(case: Case) -> dict[str, Any]:
    """It fires once its time is over, and no other does."""
    rule = next(rule for rule in rules() if rule["alert"] == case.alert)
    instance = {} if case.is_without_instance else INSTANCE
    expected = {
        "exp_labels": {"severity": case.severity, **instance, **case.labels},
        "exp_annotations": {**rule["annotations"], "summary": case.summary},
    }
    minutes = 60 if rule["for"] == "1h" else int(rule["for"].removesuffix("m"))
    fires = {"eval_time": f"{minutes}m", "alertname": case.alert, "exp_alerts": [expected]}
    still = {"eval_time": f"{minutes - 1}m", "alertname": case.alert, "exp_alerts": []}
    others = {rule["alert"] for rule in rules()} - {case.alert}
    silent = [{"eval_time": "110m", "alertname": other, "exp_alerts": []} for other in sorted(others)]
    return {
        "name": f"{case.alert}: {case.summary}",
        "interval": "1m",
        "input_series": input_series(case.differs),
        "alert_rule_test": [still, fires, *silent],
    }


def test_every_alert_fires_when_it_must(promtool, tmp_path):
    """Not before its time is over, alone, and with a sentence that a person understands."""
    quiet = {
        "name": "a healthy fleet",
        "interval": "1m",
        "input_series": input_series({}),
        "alert_rule_test": [{"eval_time": "110m", "alertname": rule["alert"], "exp_alerts": []} for rule in rules()],
    }
    observes = {**quiet, "name": "muster only observes", "input_series": input_series(
        {"muster_quarantine_away": 9, 'muster_quarantine_info{mode="enforce"}': None,
         'muster_quarantine_info{mode="observe"}': 1}
    )}  # fmt: skip
    path = tmp_path / "alerts_test.yaml"
    tests = [quiet, observes, *map(unit_test, CASES)]
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": tests}), encoding="utf-8")
    assert "SUCCESS" in promtool("test", "rules", path)
    assert {case.alert for case in CASES} == {rule["alert"] for rule in rules()}


def test_the_rules_are_valid(promtool):
    """As the guide says to check them."""
    assert f"SUCCESS: {len(rules())} rules found" in promtool("check", "rules", RULES)


def test_every_alert_has_a_runbook():
    """A section of its name, to which the alert links."""
    sections = [line[3:] for line in RUNBOOKS.read_text(encoding="utf-8").splitlines() if line.startswith("## Muster")]
    assert sections == [rule["alert"] for rule in rules()]
    for rule in rules():
        anchor = f"https://muster.example/docs/how-to/alerts.html#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == anchor


def test_the_runbooks_can_be_moved(live, tmp_path):
    """The command of the guide puts the operator's address in the place of ours, everywhere."""
    (command,) = re.findall(r"^sed -i .*$", GUIDE, re.MULTILINE)
    copy = tmp_path / RULES.relative_to(ROOT)
    copy.parent.mkdir(parents=True)
    copy.write_text(RULES.read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, timeout=60)
    (group,) = yaml.safe_load(copy.read_text(encoding="utf-8"))["groups"]
    moved = [rule["annotations"]["runbook_url"] for rule in group["rules"]]
    assert {url.partition("/how-to/alerts.html#")[0] for url in moved} == {"https://docs.internal/muster/docs"}
