"""The options by which commands reach the coordinator."""

from pathlib import Path
from typing import Annotated

import typer

from muster.config import load, read_secret
from muster_coordinator.web.client import Client
from muster_coordinator.web.local_token import find_token

_URL = typer.Option("--url", envvar="MUSTER_URL", metavar="URL", help="The coordinator's API.", show_envvar=True)

UrlOption = Annotated[str, _URL]
OptionalUrlOption = Annotated[str | None, _URL]
"""For commands that do something without a coordinator, too."""

TokenFileOption = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="File with the token; default: http.token_file.")
]
DEFAULT_URL = "http://127.0.0.1:8787"


def connect(url: str, token_file: Path | None, config: Path | None) -> Client:
    """A client with the first token found: in `token_file`, in the settings, or of the coordinator on this host."""
    if token_file is not None:
        return Client(url, read_secret(token_file, "--token-file"))
    settings = load(config)
    if settings.http.token_file is not None:
        return Client(url, read_secret(settings.http.token_file, "http.token_file"))
    return Client(url, find_token(settings.data_dir, url))
