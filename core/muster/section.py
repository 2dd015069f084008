"""The base of every table in the settings, muster's own and those of plugins."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the settings: unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)
