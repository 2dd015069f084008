"""The page of all settings."""

from generator.markdown import NOTE, fields, page, table
from pydantic import BaseModel

from muster import plugins
from muster.config import Config, Settings
from muster.settings_example import settings_example
from muster.settings_table import ENVIRONMENT_PREFIX


def settings() -> str:
    """Every setting with its environment variable, default and meaning; plugins' own sections too."""
    config = Config(Settings())
    plugins.load(config)
    lines = [
        NOTE,
        "# Settings",
        "A TOML file (`--config FILE` or `MUSTER_CONFIG`), overlaid by the environment, then defaults. In the "
        "environment, `__` stands between levels, and lists and tables are given as JSON. `muster config show` prints "
        "what is in effect, `muster config check` says what is wrong. `muster config example` prints [a file with "
        "every setting](muster.toml) as a comment.",
        _settings_table(Settings, ""),
    ]
    for name, section in sorted(config.claimed.items()):
        lines += [f"## Plugin {name}", _settings_table(type(section), f"plugins.{name}.")]
    return page(lines)


def example() -> str:
    """A settings file with every setting, as `muster config example` prints it."""
    config = Config(Settings())
    plugins.load(config)
    return settings_example(config.claimed)


def _settings_table(model: type[BaseModel], prefix: str) -> str:
    rows = (
        (key, f"`{ENVIRONMENT_PREFIX}{key.strip('`').upper().replace('.', '__')}`", *rest)
        for key, *rest in fields(model, prefix)
    )
    return table(rows, ("Setting", "Environment", "Type", "Default", "Meaning"))
