"""The page of the policy that comes with muster."""

from generator.markdown import NOTE, fields, page, table

from muster_coordinator.model.policy_row import Row
from muster_coordinator.runtime.settings import policy_file
from muster_coordinator.views import policy_text


def policy() -> str:
    """Every row of the policy that comes with muster, with its reason."""
    rows = (
        (f"`{row.name}`", policy_text.findings(row), policy_text.outcome(row), f"{row.reason}.", row.source)
        for row in policy_file.shipped_rows()
    )
    lines = [
        NOTE,
        "# The policy that comes with muster",
        "Which findings require draining. For every finding that stands against a node, the first row that matches "
        "decides. A finding that no row matches does not drain the node. An operator's rows come before these, see "
        "[the guide](../how-to/policy.md).",
        table(rows, ("Row", "Is about", "Result", "Reason", "Source")),
        "## What a row can say",
        table(fields(Row, ""), ("Field", "Type", "Default", "Meaning")),
    ]
    return page(lines)
