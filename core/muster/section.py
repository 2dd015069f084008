"""What every table of the settings is: muster's own, and those that plugins declare."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the settings: unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)
