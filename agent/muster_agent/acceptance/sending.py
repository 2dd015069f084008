"""Sends reports to the coordinator, which keeps them and shows them to everybody.

A coordinator that restarts is away for seconds, and a thousand nodes may send at the same time. So a report is sent
again a few times, after pauses of random length. It is harmless if it arrives twice.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muster.acceptance import AcceptanceReport
from muster.client import Client
from muster.commands.decision_options import author
from muster.errors import Refused, Unavailable
from muster.model import Data, Name
from muster_agent.acceptance.retries import pauses_s


class _Session(Data):
    """What the token may do."""

    role: str


class _Received(Data):
    """The acceptance that the coordinator has made of a report."""

    id: Name


def may_send(client: Client) -> str:
    """Makes sure that the coordinator takes reports, before the runs begin. Returns a warning, empty if all is well.

    Raises Refused if the token is wrong or may only read. That the coordinator is away is a warning: it may be back
    when the report is ready.
    """
    try:
        role = client.read(_Session.model_validate, client.get("session")).role
    except Unavailable as error:
        return f"{error}; the report is sent when it is ready"
    if role == "read":
        raise Refused(
            f"this token may only read at {client.url}; give --token-file the token of http.report_token_file"
        )
    return ""


def send(client: Client, report: AcceptanceReport, pause: Callable[[float], object] = time.sleep) -> str:
    """Sends a report and returns the address of its page. Raises Refused or Unavailable if it is not taken."""
    body = {"by": author(None), "report": json.loads(report.model_dump_json())}
    for pause_s in pauses_s():
        try:
            return _page(client, client.post("acceptance", body=body))
        except Unavailable:
            pause(pause_s)
    return _page(client, client.post("acceptance", body=body))


def read_report(path: Path) -> AcceptanceReport:
    """The report in a file that `muster check run` has written. Raises Refused if it is none."""
    try:
        return AcceptanceReport.model_validate_json(path.read_bytes())
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise Refused(f"{path} is no report; give the .json file that `muster check run --report-dir` wrote") from None


def _page(client: Client, answer: Any) -> str:
    return f"{client.url}/acceptance/{client.read(_Received.model_validate, answer).id}"
