"""The options with which commands find the coordinator."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from muster.commands.options import ConfigOption
from muster.defaults import DATA_DIR, HTTP_LISTEN
from muster.secret_file import read_secret
from muster.settings_table import read_table
from muster_coordinator.web.client import Client, local_url
from muster_coordinator.web.local_token import find_token


def url_option(default: str) -> Any:
    """The option --url of a command; `default` says what happens without it."""
    return typer.Option(
        "--url",
        envvar="MUSTER_URL",
        metavar="URL",
        show_envvar=True,
        help=f"Address of the coordinator's API; default: {default}.",
    )


UrlOption = Annotated[str | None, url_option("http.listen")]
TokenFileOption = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="File with the API token; default: http.token_file.")
]


def connect(url: UrlOption = None, token_file: TokenFileOption = None, config: ConfigOption = None) -> Client:
    """A client of the coordinator at `url`, or at the address in the settings.

    It uses the first token that exists: in `token_file`, in the settings, or of the coordinator on this host.
    """
    if url is not None and token_file is not None:
        return Client(url, read_secret(token_file, "--token-file"))
    listen, settings_token_file, data_dir = _placed(config)
    url = url or local_url(listen)
    if token_file is not None:
        return Client(url, read_secret(token_file, "--token-file"))
    if settings_token_file is not None:
        return Client(url, read_secret(settings_token_file, "http.token_file"))
    return Client(url, find_token(data_dir, url))


def _placed(config: Path | None) -> tuple[str, Path | None, Path]:
    """The settings for reaching the coordinator: `http.listen`, `http.token_file` and `data_dir`.

    If nothing is set, the defaults need no check, and the settings' models are not imported: that takes longer than a
    command such as `muster node list` otherwise runs.
    """
    table = read_table(config, os.environ)
    if not table:
        return HTTP_LISTEN, None, Path(DATA_DIR).expanduser()
    from muster.config import validated_settings  # noqa: PLC0415 (see above)

    settings = validated_settings(table)
    return settings.http.listen, settings.http.token_file, settings.data_dir
