"""Which metric a finding is about."""

from muster.model import Finding


def finding_metric(finding: Finding) -> str:
    """The name of the metric: what the evidence names, or else the first word of the summary.

    The summaries of all values that break a bound begin with their metric. Any other word is no metric of the check,
    and has no unit.
    """
    named = finding.evidence.get("metric")
    return named if isinstance(named, str) else finding.summary.partition(" ")[0]
