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
    """How many nodes may be out of service at once. The last node in service never goes."""

    share: Share = Field("10%", description="Share of the fleet; one node always may, where there is another")
    nodes: int | None = Field(None, ge=1, description="Nodes at most, whatever their share; unset: no cap")
    domain: Literal["block", "rack", "leaf"] = Field("rack", description="The failure domain that has its own share")
    domain_share: Share = Field("50%", description="Share of the nodes of one failure domain; one node always may")
    per_minute: float = Field(6.0, gt=0, le=6000, description="Nodes that may be drained in a minute")


class MassEventSettings(Section):
    """When so many nodes get the same fault that it is hardly their own: draining pauses until it is over."""

    nodes: int = Field(5, ge=2, description="Nodes with the same finding, at least")
    share: Share = Field("2%", description="Share of the fleet that they must be, at least")
    window_s: float = Field(600.0, gt=0, le=86_400, description="Seconds within which they got it")


class AcceptanceTest(Section):
    """A check that a node must pass before it gets work."""

    check: Name = Field(description="Name of the check")
    params: dict[str, JsonValue] = Field({}, description="Parameters")


class ReturnSettings(Section):
    """How a node comes back."""

    passes: int = Field(2, ge=1, le=100, description="How often in a row it must pass all tests")
    pause_s: float = Field(60.0, ge=0, le=86_400, description="Seconds between two rounds of tests")
    partners: int = Field(
        0, ge=0, le=64, description="Healthy nodes for a sweep with it besides, three at least; 0: no such sweep"
    )
    sweep: Name = Field("collective", description="The check of that sweep")
    wait_s: float = Field(
        600.0, ge=0, description="Seconds that a node stays out at least; twice as long for each time before"
    )
    longest_wait_s: float = Field(86_400.0, ge=0, description="The longest that it becomes")
    times: int = Field(3, ge=1, le=1000, description="After so many returns a person must let it back")
    memory_days: float = Field(30.0, gt=0, le=3650, description="Days after which a return counts half")


class QuarantineSettings(Section):
    """Taking nodes out of service, and back."""

    mode: Literal["observe", "dry-run", "enforce"] = Field(
        "observe", description="observe: only say what is wrong; dry-run: show every step; enforce: take them"
    )
    policy_file: HomePath | None = Field(
        None, description="The operator's rows of the policy (TOML); they go before those that come with muster"
    )
    budget: BudgetSettings | None = Field(
        None, description="How many may be out at once; must be set to enforce, for all else its defaults hold"
    )
    mass_event: MassEventSettings = Field(MassEventSettings(), description="When too many nodes have the same trouble")
    tests: tuple[AcceptanceTest, ...] = Field(
        (),
        description="What a node must pass to be accepted and to come back, beside what it runs by itself",
    )
    returning: ReturnSettings = Field(ReturnSettings(), description="How a node comes back")
    keep_new_out: bool = Field(
        False, description="true: nodes that join are kept out by the actors until they are accepted"
    )
    resume_by_hand: Literal["everywhere", "there"] = Field(
        "everywhere",
        description="A person resumes a drained node at one scheduler. everywhere: all others resume it too; "
        "there: they keep it out",
    )
    resync_s: float = Field(180.0, ge=5, le=3600, description="Seconds between two looks at the schedulers' nodes")
    trust_loopback: bool = Field(False, description="Deprecated: use http.trust_loopback")

    @property
    def limits(self) -> BudgetSettings:
        """The budget; where none is set, its defaults."""
        return self.budget or BudgetSettings()

    @model_validator(mode="after")
    def _has_a_budget_to_enforce(self) -> Self:
        if self.mode == "enforce" and self.budget is None:
            raise ValueError("mode = 'enforce' needs a budget: set quarantine.budget.share, for example '10%'")
        return self
