"""The settings of the quarantine: whether muster drains nodes, how many at most, and how they return to service."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from muster.home_path import HomePath
from muster.model import Name
from muster.section import Section


def _share(text: str) -> str:
    found = re.fullmatch(r"(?P<share>\d{1,3}(\.\d{1,6})?)%", text)
    if found is None or not 0 < float(found["share"]) <= 100:
        raise ValueError("must be a share of the nodes above 0%, such as 10%")
    return text


Share = Annotated[str, AfterValidator(_share)]
"""A share of nodes, such as `10%`."""


class BudgetSettings(Section):
    """How many nodes may be out of service at once. The last node in service is never drained."""

    share: Share = Field("10%", description="Maximum share of the fleet; at least one node, if the fleet has two")
    nodes: int | None = Field(None, ge=1, description="Maximum number of nodes, whatever their share; unset: no cap")
    domain: Literal["block", "rack", "leaf"] = Field("rack", description="Failure domain that has a share of its own")
    domain_share: Share = Field("50%", description="Maximum share of one failure domain; at least one node")
    per_minute: float = Field(6.0, gt=0, le=6000, description="Maximum number of nodes drained in a minute")


class MassEventSettings(Section):
    """Mass events: if many nodes report the same fault within minutes, draining pauses until the event is over."""

    nodes: int = Field(5, ge=2, description="Minimum number of nodes with the same finding")
    share: Share = Field("2%", description="Minimum share of the fleet with the same finding")
    window_s: float = Field(
        600.0, gt=0, le=86_400, description="Seconds within which these nodes must have reported it"
    )


class AcceptanceTest(Section):
    """A check that a node must pass before it gets work."""

    check: Name = Field(description="Name of the check")
    params: dict[str, JsonValue] = Field({}, description="Parameters")


class ReturnSettings(Section):
    """How a node returns to service."""

    passes: int = Field(2, ge=1, le=100, description="Rounds of tests that the node must pass in a row")
    pause_s: float = Field(60.0, ge=0, le=86_400, description="Seconds between two rounds of tests")
    partners: int = Field(
        0, ge=0, le=64, description="Healthy nodes for an additional sweep with the node, at least three; 0: no sweep"
    )
    sweep: Name = Field("collective", description="Check of that sweep")
    wait_s: float = Field(600.0, ge=0, description="Minimum seconds out of service; doubled for each earlier drain")
    longest_wait_s: float = Field(86_400.0, ge=0, description="Maximum of `wait_s` after doubling")
    times: int = Field(3, ge=1, le=1000, description="Number of drains after which a person must release the node")
    memory_days: float = Field(30.0, gt=0, le=3650, description="Days after which an earlier drain counts half")


class QuarantineSettings(Section):
    """Draining nodes and returning them to service."""

    mode: Literal["observe", "dry-run", "enforce"] = Field(
        "observe", description="observe: only report; dry-run: show every step; enforce: drain nodes"
    )
    policy_file: HomePath | None = Field(
        None, description="The operator's rows of the policy (TOML); they come before those of muster"
    )
    budget: BudgetSettings | None = Field(
        None, description="How many nodes may be out of service at once; required for enforce"
    )
    mass_event: MassEventSettings = Field(
        MassEventSettings(), description="Mass events: many nodes report the same fault"
    )
    tests: tuple[AcceptanceTest, ...] = Field(
        (),
        description="Checks to pass before a node is accepted or returns, besides its background checks",
    )
    returning: ReturnSettings = Field(ReturnSettings(), description="How a node returns to service")
    keep_new_out: bool = Field(False, description="true: actors keep new nodes out of service until they are accepted")
    resume_by_hand: Literal["everywhere", "there"] = Field(
        "everywhere",
        description="A person resumes a drained node at one scheduler. everywhere: all others resume it too; "
        "there: they keep it drained",
    )
    resync_s: float = Field(180.0, ge=5, le=3600, description="Seconds between two surveys of the schedulers' nodes")
    trust_loopback: bool = Field(False, description="Deprecated: use http.trust_loopback")

    @property
    def limits(self) -> BudgetSettings:
        """The budget, or its defaults if none is set."""
        return self.budget or BudgetSettings()

    @model_validator(mode="after")
    def _has_a_budget_to_enforce(self) -> Self:
        if self.mode == "enforce" and self.budget is None:
            raise ValueError("mode = 'enforce' needs a budget: set quarantine.budget.share, for example '10%'")
        return self
