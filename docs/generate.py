"""Writes docs/reference/*, docs/man/* and the state diagrams of docs/explanation/architecture.md from the code.

It also writes the manifests that follow from the code, and the templates of the Helm chart, which follow from these.

Each page is one function, and so is each diagram; a test compares what they give with the files.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import indent

from generator.api import api
from generator.chart import DAEMONSET, chart
from generator.checks import checks
from generator.diagrams import DIAGRAMS
from generator.hooks import hooks
from generator.house import house
from generator.limits import limits
from generator.man import muster_1, muster_toml_5
from generator.metrics import metrics
from generator.policy import policy
from generator.scale import scale
from generator.settings import example, settings

from muster.model import Json
from muster_plugins.schedulers.kubernetes import rbac

DOCS = Path(__file__).parent
ARCHITECTURE = DOCS / "explanation" / "architecture.md"
CHART = DAEMONSET / "chart" / "templates"
PAGES: dict[str, Callable[[], str]] = {
    "reference/checks.md": checks,
    "reference/api.md": api,
    "reference/hooks.md": hooks,
    "reference/limits.md": limits,
    "reference/metrics.md": metrics,
    "reference/policy.md": policy,
    "reference/scale.md": scale,
    "reference/settings.md": settings,
    "reference/muster.toml": example,
    "man/muster.1": muster_1,
    "man/muster.toml.5": muster_toml_5,
}
"""By the place of each page below docs/."""


def _rights(manifests: Callable[[], list[Json]]) -> str:
    return "# Generated from the calls that are made by `make docs`.\n" + rbac.as_yaml(manifests())


def prometheus_rule() -> str:
    """The alert rules as the object that the Prometheus Operator reads."""
    rules = (DAEMONSET / "components" / "monitoring" / "alerts.yaml").read_text(encoding="utf-8")
    return RULE_HEAD + indent(rules[rules.index("groups:") :], "  ")


RULE_HEAD = """\
# Generated from alerts.yaml by `make docs`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: muster
  namespace: muster
spec:
"""

MANIFESTS: dict[str, Callable[[], str]] = {
    "base/agent-rbac.yaml": partial(_rights, rbac.agent_manifests),
    "base/signer-rbac.yaml": partial(_rights, rbac.signer_manifests),
    "components/acting/rbac.yaml": partial(_rights, rbac.coordinator_manifests),
    "components/standbys/rbac.yaml": partial(_rights, rbac.standby_manifests),
    "components/reservations/rbac.yaml": partial(_rights, rbac.reservation_manifests),
    "components/monitoring/prometheus-rule.yaml": prometheus_rule,
}
"""By the place of each manifest below daemonset/."""


def architecture() -> str:
    """docs/explanation/architecture.md with its rooms and diagrams drawn anew."""

    def drawn(block: re.Match[str]) -> str:
        name = block["name"]
        text = house() if name == "house" else f"```mermaid\n{DIAGRAMS[name]()}\n```"
        return f"{block['begin']}\n{text}\n<!-- end -->"

    text = ARCHITECTURE.read_text(encoding="utf-8")
    return re.sub(r"(?P<begin><!-- generated: (?P<name>\w+) -->).*?<!-- end -->", drawn, text, flags=re.DOTALL)


if __name__ == "__main__":
    for place, page in PAGES.items():
        (DOCS / place).write_text(page(), encoding="utf-8")
    for place, manifest in MANIFESTS.items():
        (DAEMONSET / place).write_text(manifest(), encoding="utf-8")
    for place, text in chart().items():
        (CHART / place).write_text(text, encoding="utf-8")
    ARCHITECTURE.write_text(architecture(), encoding="utf-8")
