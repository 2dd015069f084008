"""How cases, transitions and the log of decisions lie in the database."""

import zlib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, func, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from muster_coordinator.model.actions import Action
from muster_coordinator.model.case import Case
from muster_coordinator.model.events import Command, SaveStep
from muster_coordinator.model.quarantine_events import Asked, EraseNode, SaveAction, SaveCase, SaveRequest, Step
from muster_coordinator.store.rows import read_rows
from muster_coordinator.store.tables import ACTIONS, CASES, REQUESTS, STEPS

BEGINNINGS = ("restored", "renewed")
"""The kinds of step from which on a log can be gone through again."""


def decision_rows(commands: Iterable[Command]) -> dict[Table, list[dict[str, Any]]]:
    """The rows to write, by table. Of what is written over, only the last state is."""
    cases: dict[str, Case] = {}
    actions: dict[str, Action] = {}
    requests, steps = [], []
    for command in commands:
        match command:
            case SaveCase(case=case):
                cases[case.node] = case
            case EraseNode(node=node):
                cases.pop(node, None)
            case SaveAction(action=action):
                actions[action.transition.id] = action
            case SaveStep(epoch, step):
                steps.append(_step_row(epoch, step))
            case SaveRequest(asked=asked):
                requests.append(_request_row(asked))
    return {
        CASES: [_case_row(case) for case in cases.values()],
        ACTIONS: [_action_row(action) for action in actions.values()],
        REQUESTS: requests,
        STEPS: steps,
    }


def _case_row(case: Case) -> dict[str, Any]:
    return {"node": case.node, "transition": case.transition, "body": case.model_dump_json()}


def _step_row(epoch: int, step: Step) -> dict[str, Any]:
    body = zlib.compress(step.model_dump_json().encode(), 1)
    return {"epoch": epoch, "kind": step.event.kind, "at": step.at, "body": body}


def _action_row(action: Action) -> dict[str, Any]:
    transition = action.transition
    return {"id": transition.id, "node": transition.node, "at": transition.at, "body": action.model_dump_json()}


def _request_row(asked: Asked) -> dict[str, Any]:
    return {"id": asked.id, "node": asked.node, "at": asked.at, "body": asked.model_dump_json()}


def decisions(node: str | None) -> Select[tuple[float, str, str]]:
    """The transitions of a node, or of all, and what people have asked for about it: when, id and body."""
    both = union_all(*(_of(node, table) for table in (ACTIONS, REQUESTS))).subquery()
    return select(both.c.at, both.c.id, both.c.body)


def _of(node: str | None, table: Table) -> Select[tuple[float, str, str]]:
    query = select(table.c.at, table.c.id, table.c.body)
    return query if node is None else query.where(table.c.node == node)


async def read_cases(connection: AsyncConnection) -> tuple[Case, ...]:
    """Every case, by node."""
    rows = await connection.execute(select(CASES.c.node, CASES.c.body).order_by(CASES.c.node))
    return read_rows("cases", rows, Case.model_validate_json)


async def read_latest_actions(connection: AsyncConnection) -> tuple[Action, ...]:
    """The latest transition of each case: the one that it names, as times do not tell when a clock went back."""
    latest = CASES.c.transition == ACTIONS.c.id
    rows = await connection.execute(select(ACTIONS.c.id, ACTIONS.c.body).join(CASES, latest).order_by(ACTIONS.c.node))
    return read_rows("actions", rows, Action.model_validate_json)


def old_actions(moment: float) -> tuple[ColumnElement[bool], ...]:
    """Which transitions are older, and not the latest of a case."""
    latest = select(CASES.c.transition).where(CASES.c.transition.is_not(None))
    return ACTIONS.c.at < moment, ACTIONS.c.id.not_in(latest)


async def old_steps(connection: AsyncConnection, moment: float) -> tuple[ColumnElement[bool], ...]:
    """Which steps of the log are older; from the last beginning before `moment` on, all are needed."""
    older = select(func.max(STEPS.c.number)).where(STEPS.c.kind.in_(BEGINNINGS), STEPS.c.at < moment)
    return (STEPS.c.number < (await connection.scalar(older) or 0),)


async def empty_beginnings(connection: AsyncConnection) -> tuple[ColumnElement[bool], ...]:
    """Which steps are beginnings with which nothing began, as at once another followed."""
    query = select(STEPS.c.number).where(STEPS.c.kind.in_(BEGINNINGS)).order_by(STEPS.c.number)
    numbers = (await connection.scalars(query)).all()
    return (STEPS.c.number.in_([number for number, later in pairwise(numbers) if later == number + 1]),)


async def read_log(connection: AsyncConnection, epoch: int) -> tuple[Step, ...]:
    """The log of one leadership, from its first beginning that is kept."""
    wanted = select(STEPS.c.number, STEPS.c.body).where(STEPS.c.epoch == epoch).order_by(STEPS.c.number)
    rows = await connection.execute(wanted)
    return read_rows("steps", rows, _step)


def _step(body: bytes) -> Step:
    return Step.model_validate_json(zlib.decompress(body))
