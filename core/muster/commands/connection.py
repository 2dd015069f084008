"""The options with which commands find the coordinator."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muster.addresses import is_loopback
from muster.client import Client, local_url
from muster.commands.options import ConfigOption
from muster.defaults import DATA_DIR, HTTP_LISTEN, TABLES
from muster.local_token import find_token
from muster.secret_file import read_secret
from muster.settings_table import read_table

if TYPE_CHECKING:
    from muster.config import Settings


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
    return _client(url, token_file, *_placed(config))


def connect_by(settings: "Settings", url: str | None, token_file: Path | None) -> Client:
    """The same as `connect`, for a command that has read the settings anyway."""
    return _client(url, token_file, settings.http.listen, settings.http.token_file, settings.data_dir)


def _client(
    url: str | None, token_file: Path | None, listen: str, settings_token_file: Path | None, data_dir: Path
) -> Client:
    url = url or local_url(listen)
    if token_file is not None:
        return Client(url, read_secret(token_file, "--token-file"))
    if settings_token_file is not None:
        return Client(url, read_secret(settings_token_file, "http.token_file"))
    return Client(url, find_token(data_dir, url))


def _placed(config: Path | None) -> tuple[str, Path | None, Path]:
    """The settings for reaching the coordinator: `http.listen`, `http.token_file` and `data_dir`.

    The models check the settings and name every mistake, but their import takes longer than a command such as `muster
    node list` otherwise runs. So they are used only if `_placed_quickly` finds anything unusual.
    """
    table = read_table(config, os.environ)
    if (placed := _placed_quickly(table)) is not None:
        return placed
    from muster.config import validated_settings  # noqa: PLC0415 (see above)

    settings = validated_settings(table)
    return settings.http.listen, settings.http.token_file, settings.data_dir


def _placed_quickly(table: Mapping[str, Any]) -> tuple[str, Path | None, Path] | None:
    """The same without the models; None if a table may be misspelt or a value wrong."""
    http = table.get("http", {})
    if not table.keys() <= TABLES or not isinstance(http, dict) or not http.keys() <= {"listen", "token_file"}:
        return None
    listen, data_dir = http.get("listen", HTTP_LISTEN), table.get("data_dir", DATA_DIR)
    token_file = http.get("token_file")
    if not isinstance(listen, str) or not isinstance(data_dir, str) or not isinstance(token_file, str | None):
        return None
    try:
        if token_file is None and not is_loopback(listen):
            return None
        return listen, None if token_file is None else Path(token_file).expanduser(), Path(data_dir).expanduser()
    except (ValueError, RuntimeError):  # no address, or a ~ without a home directory
        return None
