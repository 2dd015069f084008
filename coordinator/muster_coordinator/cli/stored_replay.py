"""Replays a policy on the database that the settings name, beside a coordinator that may use it."""

import time
from typing import TYPE_CHECKING

from muster.config import Settings
from muster.errors import Unavailable
from muster.extras import missing_package
from muster_coordinator.quarantine.policy import Policy

if TYPE_CHECKING:
    from muster_coordinator.store.replay import StoredReplay

DAYS = 30.0
"""How far back a replay looks by default, because all runs are kept for that time."""


def days_kept(settings: Settings) -> float:
    """How far back a replay looks unless the user names a start."""
    return min(DAYS, settings.store.keep_days, settings.store.keep_findings_days)


async def replay_history(settings: Settings, policy: Policy, since: float) -> "StoredReplay | None":
    """The decisions of the policy from `since` until now; None if there is no database.

    Raises Unavailable or SettingsError if the history cannot be read.
    """
    try:
        from muster_coordinator.store.opening import open_to_read  # noqa: PLC0415 (an agent's install has no database)
        from muster_coordinator.store.replay import replay_stored  # noqa: PLC0415 (see above)
    except ModuleNotFoundError as error:
        raise Unavailable(missing_package(error) or str(error)) from None
    engine = open_to_read(settings)
    if engine is None:
        return None
    try:
        return await replay_stored(engine, settings.quarantine, policy, since, time.time())
    finally:
        await engine.dispose()
