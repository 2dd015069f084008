"""The options of every command that changes something for the fleet: who, and for decisions about nodes, why."""

import os
import socket
from typing import Annotated

import typer

ReasonOption = Annotated[str, typer.Option(metavar="TEXT", help="Reason; the history shows it.")]
ByOption = Annotated[str | None, typer.Option(metavar="WHO", help="Your name; default: USER@HOST.")]


def decision(by: str | None, reason: str) -> dict[str, str]:
    """The options in the form of the API: who decides and why."""
    return {"by": author(by), "reason": reason}


def author(by: str | None) -> str:
    """The name that is given, or else the user of this terminal, by number if the system knows no name."""
    if by:
        return by
    import getpass  # noqa: PLC0415 (it takes a while to import, and most commands need no name)

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # KeyError before Python 3.13
        user = f"user {os.getuid()}"
    return f"{user}@{socket.gethostname()}"
