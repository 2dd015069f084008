"""How cases, transitions and the log of decisions lie in the database."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Table, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from muster_coordinator.events import Command, SaveStep
from muster_coordinator.quarantine.actions import Action
from muster_coordinator.quarantine.case import Case
from muster_coordinator.quarantine.events import SaveAction, SaveCase, Step
from muster_coordinator.tables import ACTIONS, CASES, STEPS

NAMES_AT_ONCE = 1_000
"""Names in one query: databases take some ten thousand values at most."""


def decision_rows(commands: Iterable[Command]) -> dict[Table, list[dict[str, Any]]]:
    """The rows to write, by table. Of what is written over, only the last state is."""
    cases: dict[str, Case] = {}
    actions: dict[str, Action] = {}
    steps = []
    for command in commands:
        match command:
            case SaveCase(case=case):
                cases[case.node] = case
            case SaveAction(action=action):
                actions[action.transition.id] = action
            case SaveStep(epoch, step):
                steps.append({"epoch": epoch, "at": step.at, "body": step.model_dump_json()})
    return {
        CASES: [{"node": node, "body": case.model_dump_json()} for node, case in cases.items()],
        ACTIONS: [_action_row(action) for action in actions.values()],
        STEPS: steps,
    }


def _action_row(action: Action) -> dict[str, Any]:
    transition = action.transition
    return {"id": transition.id, "node": transition.node, "at": transition.at, "body": action.model_dump_json()}


async def read_cases(connection: AsyncConnection) -> tuple[Case, ...]:
    """Every case, by node."""
    return tuple(map(Case.model_validate_json, await connection.scalars(select(CASES.c.body).order_by(CASES.c.node))))


async def read_latest_actions(connection: AsyncConnection, cases: Iterable[Case]) -> tuple[Action, ...]:
    """The latest transition of each case: the one that it names, as times do not tell when a clock went back."""
    names = [case.transition for case in cases if case.transition is not None]
    found: list[Action] = []
    for start in range(0, len(names), NAMES_AT_ONCE):
        is_wanted = ACTIONS.c.id.in_(names[start : start + NAMES_AT_ONCE])
        bodies = await connection.scalars(select(ACTIONS.c.body).where(is_wanted).order_by(ACTIONS.c.node))
        found += map(Action.model_validate_json, bodies)
    return tuple(found)


async def remove_old_logs(connection: AsyncConnection, moment: float) -> None:
    """Removes the logs of leaderships that have ended before `moment`, each as a whole: a part of one is of no use."""
    ended = select(STEPS.c.epoch).group_by(STEPS.c.epoch).having(func.max(STEPS.c.at) < moment)
    present = select(func.max(STEPS.c.epoch)).scalar_subquery()
    await connection.execute(delete(STEPS).where(STEPS.c.epoch.in_(ended), STEPS.c.epoch < present))


async def read_log(connection: AsyncConnection, epoch: int) -> tuple[Step, ...]:
    """The log of one leadership, from its beginning."""
    bodies = await connection.scalars(select(STEPS.c.body).where(STEPS.c.epoch == epoch).order_by(STEPS.c.number))
    return tuple(map(Step.model_validate_json, bodies))
