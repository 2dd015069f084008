"""Alarms for plugins: problems of the quarantine that a person should know."""

from enum import StrEnum

from muster.model import Data, Instant
from muster.transition import PluginText


class AlarmKind(StrEnum):
    """The kind of problem, and the subject of the alarm.

    MASS_EVENT: many nodes share a cause, the subject, and draining is frozen. BUDGET: faulty nodes are not drained
    because a limit is reached: that of the `fleet`, the `rate`, or a failure domain such as `rack r1`. ACTION: an
    actor, the subject, cannot carry out decisions; or no actor drains a node, and the subject is for example `node n1`.
    PERSON: a node, the subject, stays out until a person releases it.
    """

    MASS_EVENT = "MASS_EVENT"
    BUDGET = "BUDGET"
    ACTION = "ACTION"
    PERSON = "PERSON"


class Alarm(Data):
    """An alarm that stands, or that is over if it has `ended_at`.

    `kind`, `subject` and `since` identify it. `text` says in one line what is wrong and what to do; for an alarm that
    is over, why it ended. In a `dry_run`, no work was kept off any node.
    """

    kind: AlarmKind
    subject: PluginText
    text: PluginText
    since: Instant
    ended_at: Instant | None = None
    dry_run: bool = False

    @property
    def key(self) -> tuple[AlarmKind, str]:
        """Kind and subject. At most one alarm with this key stands at a time."""
        return self.kind, self.subject

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None
