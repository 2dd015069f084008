"""One finding about many things of a kind, such as ports or processes."""

from collections.abc import Iterable, Mapping

from muster import Action, Finding, Severity
from muster.model import Json

MOST_LISTED = 20
"""Maximum number of things that one finding names. The others are counted."""


def listed_finding(
    finds: Mapping[str, str], code: str, severity: Severity, parts: Iterable[str], action: Action = Action.NONE
) -> list[Finding]:
    """The finding that names `parts`; None without parts. `finds` has the meaning of each code."""
    found = list(parts)
    if not found:
        return []
    listed = found[:MOST_LISTED]
    more = f" and {len(found) - len(listed)} more" if len(found) > len(listed) else ""
    evidence: Json = {"count": len(found), "listed": [*listed]}
    summary = f"{finds[code]}: {', '.join(listed)}{more}"
    return [Finding(code=code, summary=summary, severity=severity, action=action, evidence=evidence)]
