"""A member of groups that costs little: what a simulated agent answers to orders, without an agent's state machines.

It answers as `sweep_member` does, whose decisions are those of a real agent: it has one group at a time, declines
another invitation as busy, and refuses what has expired. It leaves out what the sweeps of the benchmarks do not meet:
orders that come twice, other leaders, and deadlines. An abort frees it at once.
The answers are written as text; a test compares them with those of `sweep_member`.
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks.noop_plugin.muster_noop import NOOP_GROUP
from pydantic_core import from_json, to_json

from muster.model import Run, Verdict, format_instant, parse_instant


class EncodedReply(NamedTuple):
    """A reply about a group as JSON, and when it was made."""

    payload: bytes
    sent_at: float


@dataclass(slots=True)
class _Part:
    """The part in a group: what it does, its rank, and when the rank was at its rendezvous and was let go."""

    group: str
    params: dict[str, Any]
    rank: int | None = None
    arrived_at: float = 0.0
    released_at: float | None = None


class LeanMember:
    """The part of the agent `node` that takes part in groups; `reply` and `report` send what it says."""

    def __init__(self, node: str, reply: Callable[[EncodedReply], None], report: Callable[[Run], None]) -> None:
        self._node = node
        self._reply = reply
        self._report = report
        self._part: _Part | None = None

    def obey(self, payload: bytes) -> None:
        """Carries out an order about a group, and no other."""
        order = from_json(payload)
        kind, group, now = order["kind"], order.get("group"), time.time()
        part = self._part if self._part is not None and self._part.group == group else None
        is_late = kind in ("join", "prepare") and now > parse_instant(order["expires_at"])
        if is_late or (kind == "prepare" and part is None):
            self._say(group, now, "declined", ',"reason":"expired","detail":"too late"')
        elif kind == "join" and self._part is None:
            self._part = _Part(group, order["params"])
            self._say(group, now, "accepted", ',"address":"127.0.0.1","port":1,"ranks":1,"knows_secrets":true')
        elif kind == "join" and part is None:
            self._say(group, now, "declined", ',"reason":"busy","detail":"the node is in another group"')
        elif part is not None and kind == "prepare" and part.rank is None:
            part.rank, part.arrived_at = order["first_rank"], now
            self._say(group, now, "ready")
        elif part is not None and kind == "start" and part.rank is not None and part.released_at is None:
            part.released_at = now
            asyncio.get_running_loop().call_later(part.params["work_s"], self._finish, part)
        elif part is not None and kind == "abort":
            self._part = None

    def _finish(self, part: _Part) -> None:
        """Reports the run and its result, unless the group was given up."""
        if part is not self._part or part.released_at is None:
            return
        self._part, work_s = None, part.params["work_s"]
        metrics = {"arrived_at": part.arrived_at, "released_at": part.released_at}
        self._report(_run(self._node, part, metrics))
        rank = {"rank": part.rank, "verdict": Verdict.PASS, "findings": (), "metrics": metrics, "facts": {}}
        ranks = to_json([rank | {"duration_s": work_s}]).decode()
        self._say(part.group, time.time(), "finished", f',"ranks":{ranks}')

    def _say(self, group: str, now: float, kind: str, more: str = "") -> None:
        about = f'"sent_at":"{format_instant(now)}","node":"{self._node}","group":"{group}","kind":"{kind}"'
        self._reply(EncodedReply(f'{{"schema":1,"id":"{_new_id()}",{about}{more}}}'.encode(), now))


def _new_id() -> str:
    """As long as the ids of a real agent, for which it asks the operating system."""
    return f"{random.getrandbits(128):032x}"


def _run(node: str, part: _Part, metrics: dict[str, float]) -> Run:
    return Run(
        id=_new_id(),
        node=node,
        check=NOOP_GROUP.name,
        verdict=Verdict.PASS,
        metrics={**metrics},
        params={"work_s": part.params["work_s"]},
        started_at=metrics["released_at"],
        duration_s=part.params["work_s"],
        group=part.group,
        cause=part.group,
        simulated=True,
    )
