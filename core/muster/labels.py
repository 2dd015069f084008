"""Labels of nodes, in the form that Kubernetes accepts."""

import re

MOST_LABELS = 512
"""Labels of one node. Kubernetes sets no limit. Node feature discovery makes about 200, and 512 fit into a message."""

LABEL_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""The name part of a label's key, after the prefix if there is one."""

_LABEL_KEY = re.compile(rf"([A-Za-z0-9.-]{{1,253}}/)?{LABEL_NAME.pattern}")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9._-]{0,63}")


def is_label_value(text: str) -> bool:
    """Whether Kubernetes would accept this as the value of a label."""
    return _LABEL_VALUE.fullmatch(text) is not None


def valid_labels(labels: dict[str, str]) -> dict[str, str]:
    """The labels unchanged; ValueError for too many, or for labels that Kubernetes would not accept."""
    if len(labels) > MOST_LABELS:
        raise ValueError(f"holds {len(labels)} labels, at most {MOST_LABELS} are valid")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise ValueError(f"{key[:80]!r} is not the key of a label, for example topology.kubernetes.io/rack")
        if not is_label_value(value):
            raise ValueError(f"label {key!r} has the value {value[:80]!r}; use up to 63 letters, digits and . _ -")
    return labels
