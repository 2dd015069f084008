"""The options by which commands reach the coordinator."""

from pathlib import Path
from typing import Annotated

import typer

from muster.config import load, read_secret
from muster_coordinator.client import Client

_URL = typer.Option("--url", envvar="MUSTER_URL", metavar="URL", help="The coordinator's API.", show_envvar=True)

UrlOption = Annotated[str, _URL]
OptionalUrlOption = Annotated[str | None, _URL]
"""For commands that do something without a coordinator, too."""

TokenFileOption = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="File with the token; default: http.token_file.")
]
DEFAULT_URL = "http://127.0.0.1:8787"


def connect(url: str, token_file: Path | None, config: Path | None) -> Client:
    """A client with the token of `token_file`, or else of the settings."""
    file = token_file or load(config).http.token_file
    return Client(url, None if file is None else read_secret(file, "--token-file" if token_file else "http.token_file"))
