"""The settings of the plugin `script`, apart from what runs the scripts."""

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from muster import Needs, Section
from muster_plugins.checks.script.trust import distrust

NAME = "script"

_Protocol = Literal["nagios", "npd"]


class ScriptCheck(Section):
    """A table `[plugins.script.checks.<name>]`."""

    path: Path = Field(description="Executable; only users that you trust may have write access")
    args: tuple[str, ...] = Field((), description="Arguments, passed as they are, without a shell")
    protocol: _Protocol = Field(
        "nagios", description="Exit codes. nagios: 1 warns, 2 fails, 3 is unknown; npd: 1 fails, 2 is unknown"
    )
    interval_s: float | None = Field(None, gt=0, description="Seconds between background runs; unset: on demand only")
    timeout_s: float = Field(60.0, gt=0, le=86_400, description="Deadline of one run in seconds")
    needs: Needs = Field(Needs.NOTHING, description="What must be idle: NOTHING, IDLE_DEVICE or IDLE_NODE")

    @field_validator("path")
    @classmethod
    def _is_trusted(cls, value: Path) -> Path:
        # Not checked here that the file exists: the coordinator and other nodes may have the same settings.
        if (os.path.lexists(value) or not value.is_absolute()) and (reason := distrust(value)):
            raise ValueError(reason)
        return value


class ScriptActor(Section):
    """The table `[plugins.script.actor]`."""

    path: Path = Field(description="Executable; only users that you trust may have write access")
    timeout_s: float = Field(8.0, gt=0, le=9, description="Deadline in seconds; no plugin has more than 10")
    can_cordon: bool = Field(False, description="true: it drains nodes; false: it only notifies")
    alarms: bool = Field(False, description="Run it for alarms, too; it then gets another JSON, which has `kind`")

    @field_validator("path")
    @classmethod
    def _is_absolute(cls, value: Path) -> Path:
        # Not checked here that the file exists: agents may have the same settings, but not this file.
        if not value.is_absolute():
            raise ValueError("must be an absolute path")
        return value


class ScriptSettings(Section):
    """The table `[plugins.script]`."""

    checks: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")], ScriptCheck] = Field(
        {}, description="By name, the executables; each becomes the check script.<name>"
    )
    actor: ScriptActor | None = Field(
        None, description="The executable that is run when a node changes its service state; unset: none"
    )
