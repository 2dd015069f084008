"""Options that several commands share, so that they look and behave the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

from muster.config import load as load_settings

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", envvar="MUSTER_CONFIG", metavar="FILE", help="Settings file (TOML).", show_envvar=True),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, to stdout.")]

__all__ = ["ConfigOption", "JsonOption", "load_settings"]
