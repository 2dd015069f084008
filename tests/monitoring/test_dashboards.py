"""Every query of the dashboards can be parsed, and finds something on what was really scraped."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.monitoring.conftest import BROKEN, COMPONENT, Watched
from tests.waiting import wait_for

DASHBOARDS = sorted((COMPONENT / "dashboards").glob("*.json"))
VARIABLES = {"$__rate_interval": "5s", "$coordinator": ".*", "$agent": ".*", "$node": BROKEN}
"""What Grafana puts in the place of each variable."""

MAY_FIND_NOTHING = {
    "muster_actions_failing": "there is no actor",
    "muster_messages_refused_total": "no message was refused",
}
"""Metrics without a series in the fleet of these tests, and why."""


def dashboard(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def queries(path: Path) -> list[str]:
    """All queries of the panels of a dashboard, with the variables replaced."""
    targets = (target for panel in dashboard(path)["panels"] for target in panel.get("targets", ()))
    return [filled_in(target["expr"]) for target in targets]


def filled_in(text: str) -> str:
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    assert "$" not in text, text
    return text


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_can_be_imported_anywhere(path):
    """It has a fixed address, takes its data source from a variable, and has no panel twice in a place."""
    made = dashboard(path)
    assert made["uid"] == f"muster-{path.stem}"
    assert not made.keys() & {"__inputs", "__requires", "id"}
    assert made["templating"]["list"][0] | {"current": {}} == {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
    }
    sources = re.findall(r'"datasource": \{\s*"type": "(\w+)",\s*"uid": "([^"]+)"', path.read_text(encoding="utf-8"))
    assert set(sources) == {("prometheus", "${datasource}")}
    ids = [panel["id"] for panel in made["panels"]]
    assert len(ids) == len(set(ids))
    fields = [
        (x, y)
        for place in (panel["gridPos"] for panel in made["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(fields) == len(set(fields))
    assert max(x for x, _ in fields) < 24


def test_every_query_can_be_parsed(promtool, tmp_path):
    """By promtool, as expressions of rules."""
    found = [query for path in DASHBOARDS for query in queries(path)]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(found)]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}), encoding="utf-8")
    assert f"{len(found)} rules found" in promtool("check", "rules", path)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_query_finds_something(watched: Watched, path):
    """Except for metrics that this fleet does not have. Rates need a second scrape."""
    for query in queries(path):
        if any(metric in query for metric in MAY_FIND_NOTHING):
            watched.prometheus.query(query)
        else:
            wait_for(partial(watched.prometheus.query, query), query)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_variable_has_values(watched: Watched, path):
    """The label that it lists is on the series that it names."""
    asked = [variable for variable in dashboard(path)["templating"]["list"] if variable["type"] == "query"]
    for variable in asked:
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
        assert found, variable
        assert variable["query"]["query"] == variable["definition"]
        assert watched.prometheus.get(f"label/{found[2]}/values", **{"match[]": filled_in(found[1])}), variable
