"""`muster quarantine replay`: the decisions of a policy on the stored history."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muster.commands.options import JsonOption, load_settings, options_of
from muster.terminal import say, say_json

if TYPE_CHECKING:
    from muster.config import Settings
    from muster_coordinator.quarantine.policy import Policy
    from muster_coordinator.quarantine.replay_comparison import Compared
    from muster_coordinator.store.replay import StoredReplay

SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Start: ISO 8601 with a time zone; default: 30 days ago."),
]
PolicyOption = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Policy file to try; default: the one in effect."),
]


@options_of(load_settings)
def replay(
    settings: "Settings",
    *,
    since: SinceOption = None,
    policy: PolicyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay the stored history under a policy; needs no running coordinator."""
    import asyncio  # noqa: PLC0415 (a command without it starts sooner)

    from muster.errors import Unavailable  # noqa: PLC0415 (see above)
    from muster.instants import instant_text  # noqa: PLC0415 (see above)
    from muster_coordinator.cli.stored_replay import days_kept, replay_history  # noqa: PLC0415 (see above)
    from muster_coordinator.quarantine.replay_comparison import compared  # noqa: PLC0415 (see above)
    from muster_coordinator.views.replay_text import replay_lines  # noqa: PLC0415 (see above)

    now = time.time()
    begin = now - days_kept(settings) * 86_400 if since is None else _begin(since, now)
    stored = asyncio.run(replay_history(settings, _policy(settings, policy), begin))
    if stored is None:
        raise Unavailable(
            "there is no database: run this on the coordinator's host, with its settings (--config or MUSTER_CONFIG)"
        )
    rows = compared(stored.replay.decisions, stored.drains_then)
    name = "the policy in effect" if policy is None else str(policy)
    if as_json:
        say_json(_as_json(stored, rows, name, now))
        return
    days, drains_then = (now - stored.begins) / 86_400, len(stored.drains_then)
    if since is not None and begin < stored.begins:
        say(f"--since: the complete history begins at {instant_text(stored.begins)}; replayed from there.")
    lines = replay_lines(stored.replay, rows, nodes=stored.nodes, days=days, policy=name, drains_then=drains_then)
    say("\n".join(lines))


def _begin(since: str, now: float) -> float:
    """The time in `--since`. Raises Refused if it is not a time or is in the future."""
    from muster.errors import Refused  # noqa: PLC0415 (see above)
    from muster.model import parse_instant  # noqa: PLC0415 (see above)

    try:
        begin = float(parse_instant(since))
    except ValueError:
        raise Refused(
            f"--since: {since!r} is not a time; use ISO 8601 with a time zone: 2026-01-31T12:00:00Z"
        ) from None
    if begin > now:
        raise Refused(f"--since: {since} is in the future; use a time before now")
    return max(0.0, begin)


def _policy(settings: "Settings", file: Path | None) -> "Policy":
    """The policy in `file`, or the one in effect. Raises SettingsError with everything that is wrong in it."""
    from muster import plugins  # noqa: PLC0415 (see above)
    from muster.config import Config  # noqa: PLC0415 (see above)
    from muster_coordinator.runtime.settings.known_findings import known_findings  # noqa: PLC0415 (see above)
    from muster_coordinator.runtime.settings.policy import known_checks, policy_of  # noqa: PLC0415 (see above)
    from muster_coordinator.runtime.settings.policy_file import read_policy  # noqa: PLC0415 (see above)

    checks = known_checks(plugins.load(Config(settings)))
    if file is None:
        return policy_of(settings, checks)
    return read_policy(file, None if checks is None else known_findings(checks), named_by="--policy")


def _as_json(stored: "StoredReplay", rows: "Sequence[Compared]", policy: str, now: float) -> dict[str, Any]:
    from muster.model import format_instant  # noqa: PLC0415 (see above)
    from muster_coordinator.quarantine.replay import ReplayedKind  # noqa: PLC0415 (see above)
    from muster_coordinator.views.replay_text import NOT_KNOWN  # noqa: PLC0415 (see above)

    return {
        "policy": policy,
        "since": format_instant(stored.begins),
        "until": format_instant(now),
        "nodes": stored.nodes,
        "drains": sum(decision.kind is ReplayedKind.DRAINED for decision in stored.replay.decisions),
        "most_out": stored.replay.most_out,
        "drains_then": len(stored.drains_then),
        "decisions": [{**row.model_dump(mode="json"), "differs": row.differs} for row in rows],
        "not_known": list(NOT_KNOWN),
    }
