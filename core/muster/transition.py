"""The contract between decisions and schedulers: transitions for plugins, and the outcomes and surveys of plugins."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator

from muster.cause_label import short_label
from muster.model import Action, Data, Finding, Instant, Name, ServiceState

OUT_OF_SERVICE = frozenset({ServiceState.ACCEPTING, ServiceState.CORDONED, ServiceState.PROBATION})
"""The states in which a node must get no work."""

ACTION_TEXTS = {
    Action.CHECK_APPLICATION: "check the application",
    Action.RESET_GPU: "reset the GPU",
    Action.REBOOT_NODE: "reboot the node",
    Action.INSPECT_HARDWARE: "inspect the hardware",
    Action.REPLACE: "replace the hardware",
}
"""The recommended actions in words; NONE has none."""

_UUID_ENDS_BY = 112
"""Characters of `cause_text` within which the UUID of the GPU ends, unless other parts are long.

With `muster: `, which begins Slurm's reason, these are the first 120 characters, which `squeue` and dashboards show.
"""

_LEAST_SUMMARY = 20
"""A summary is never cut to less, however long the other parts are."""


class Cause(Data):
    """One finding for which a node is out of service. `check`, `code` and `summary` are the finding's.

    `device` is the index of the GPU, None for the node, and `uuid` that GPU's. `xid` or `sxid` is the driver's number
    of the error. `since` is the start of the run that found it first.
    """

    code: str
    check: str = ""
    device: int | None = None
    uuid: str = ""
    xid: int | None = None
    sxid: int | None = None
    summary: str = ""
    since: Instant | None = None

    @classmethod
    def of(cls, finding: Finding, check: str, uuid: str = "") -> Self:
        """The cause for a finding of `check`; `uuid` is that of its device."""
        return cls(
            code=finding.code,
            check=check,
            device=finding.device,
            uuid=uuid,
            xid=_number(finding, "xid"),
            sxid=_number(finding, "sxid"),
            summary=finding.summary,
        )

    @property
    def label(self) -> str:
        """What the finding is called where there is room: `XID 79`, `SXID 12028`, or the whole code, `gemm.slow`."""
        return self._number or self.code

    @property
    def full(self) -> str:
        """The label and the GPU: `XID 79 GPU3`, `gemm.slow GPU3`."""
        return self.label if self.device is None else f"{self.label} GPU{self.device}"

    @property
    def short(self) -> str:
        """What the finding is called in lists, in at most 12 characters: `XID 79 GPU3`, `ECC UE GPU0`, `coll slow`."""
        return short_label(self.code, self.check, self._number, self.device)

    @property
    def _number(self) -> str:
        """The driver's number of the error, which operators know better than the code; empty without one."""
        if self.xid is not None:
            return f"XID {self.xid}"
        return "" if self.sxid is None else f"SXID {self.sxid}"


def _number(finding: Finding, name: str) -> int | None:
    """A number from the evidence, which an agent may fill with anything."""
    number = finding.evidence.get(name)
    return number if isinstance(number, int) else None


class Transition(Data):
    """A change of a node's service state. `id` stays the same when a plugin is called again.

    `causes` are the findings for which the node is out of service, the worst first; a retest keeps them. `codes` are
    the codes of the findings that led to this transition, `action` is the recommended action, and `by` the person who
    asked for it, None for the policy. In a `dry_run` a plugin changes nothing and returns what it would do.
    """

    id: Name
    node: Name
    before: ServiceState
    after: ServiceState
    reason: str
    at: Instant
    codes: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    action: Action = Action.NONE
    by: str | None = None
    dry_run: bool = False

    @property
    def is_out(self) -> bool:
        """Whether the node must get no work from now on."""
        return self.after in OUT_OF_SERVICE


def cause_text(transition: Transition) -> str:
    """Why the node is in its state, in one line for people: `describe_causes`, marked as a retest during one.

    A transition without causes, or back into service, has its reason instead. For a HELD node the text ends with the
    reason, which says why it is not drained.
    """
    if not transition.causes or transition.after is ServiceState.IN_SERVICE:
        return transition.reason
    note = ", retest" if transition.after is ServiceState.PROBATION else ""
    text = describe_causes(transition.causes, transition.action, note)
    return f"{text}; {transition.reason}" if transition.after is ServiceState.HELD else text


def describe_causes(causes: Sequence[Cause], action: Action, note: str = "") -> str:
    """At least one cause and what to do, in one line, the most important first; `note` follows the name of the first.

    Lists cut this line: `sinfo -R` after 20 characters, dashboards after 60 or 120. So the error and the GPU come
    first, then the code of the error, what to do, the UUID, the details, and the other causes: `ECC UE GPU0:
    nvml.ecc_uncorrected; reset the GPU; GPU-5c1d2e3f-1111-2222-3333-444455556666; 2 uncorrected memory errors; +1 more:
    XID 74 GPU2`. An XID has its meaning in place of a code: `XID 79 GPU3: GPU has fallen off the bus; reboot the node`.
    """
    worst, *others = causes
    todo = "; ".join(filter(None, (ACTION_TEXTS.get(action, ""), worst.uuid)))
    more = f"+{len(others)} more: {', '.join(cause.full for cause in others)}" if others else ""
    if worst.label == worst.code:
        return "; ".join(filter(None, (f"{worst.short}: {worst.code}{note}", todo, worst.summary, more)))
    begin = f"{worst.short}{note}"
    meaning = _shortened(_without_label(worst), _UUID_ENDS_BY - len(f"{begin}: ; {todo}"))
    return "; ".join(filter(None, (f"{begin}: {meaning}" if meaning else begin, todo, more)))


def _without_label(cause: Cause) -> str:
    """The summary without the label with which it often begins: `XID 79, GPU has fallen off the bus`."""
    begins = cause.summary.startswith((f"{cause.label},", f"{cause.label}:"))
    return cause.summary[len(cause.label) + 1 :].lstrip() if begins else cause.summary


def _shortened(text: str, most: int) -> str:
    most = max(most, _LEAST_SUMMARY)
    return text if len(text) <= most else f"{text[: most - 3].rstrip()}..."


def _writable(text: str) -> str:
    return text.encode(errors="replace").decode()


PluginText = Annotated[str, AfterValidator(_writable)]
"""Text of a scheduler or a plugin. Invalid Unicode is replaced, because it could not be stored."""


class Effect(StrEnum):
    """The outcome of an action.

    DONE: the node is in the state of the transition, now or already. WOULD: what a dry run would have done. LEFT:
    muster respects a mark or an opt-out of somebody else, and does not try again. FAILED: muster tries again.
    """

    DONE = "DONE"
    WOULD = "WOULD"
    LEFT = "LEFT"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionOutcome:
    """The outcome of a plugin's action on a transition; `detail` describes it for people, with names and numbers.

    `retry_after_s` of a FAILED one is how long the other side asks muster to wait. `only_tells` says that the plugin
    only notifies and drains no nodes, so it does not count for the budget.
    """

    effect: Effect
    detail: str
    retry_after_s: float | None = None
    only_tells: bool = False


class Mark(StrEnum):
    """Who keeps work off a node.

    NONE: nobody. OURS: muster. UNDONE: muster's mark is there, but somebody has uncordoned the node. FOREIGN: somebody
    else.
    """

    NONE = "NONE"
    OURS = "OURS"
    UNDONE = "UNDONE"
    FOREIGN = "FOREIGN"


class SchedulerNode(Data):
    """The state of a node in its scheduler. `transition` is the id in our mark.

    `incomplete` means that a part of our marks is missing. `detail` is the text that a person wrote with their own
    mark. `leaving` says why the node leaves or restarts as planned: a scale-down, the end of a lease, an announced
    reboot. `keeps_off` says how somebody keeps work off a node without a cordon, such as by a taint: muster may still
    cordon it. `is_new` means that the node gets no work from its start until somebody accepts it; its `registration`
    distinguishes it from an earlier node of the same name.
    """

    node: Name
    mark: Mark
    is_new: bool = False
    registration: PluginText | None = None
    transition: PluginText | None = None
    incomplete: bool = False
    detail: PluginText = ""
    opted_out: bool = False
    leaving: PluginText | None = None
    keeps_off: PluginText | None = None
    labels: dict[str, str] = {}


class Survey(Data):
    """All nodes of a scheduler; `summary` names the scheduler. Nodes that it does not list are not in it.

    `can_cordon` says that the plugin can drain nodes now. `problem` says what is missing if it should be able to, and
    what to change.
    """

    summary: PluginText
    can_cordon: bool
    problem: PluginText | None = None
    nodes: tuple[SchedulerNode, ...] = ()
