"""Starts the agent. It is imported before the settings are read, so it imports what runs inside the function.

The daemon forks the launcher only when it has imported and made everything that it can without a thread: its modules,
the announcements of its checks and muster's references. Importing writes to pages all over the memory, and Python's
models and functions need many megabytes of such pages. Those that are written to before the fork count once for all
three processes of an agent; those that are written to afterwards, once for each.
"""

from typing import TYPE_CHECKING

from muster.extras import require_extras
from muster.garbage import no_collection

if TYPE_CHECKING:
    from muster.config import Settings


def start(settings: "Settings") -> None:
    """Runs the agent of this node until it is stopped."""
    require_extras("agent", "agent")
    with no_collection():
        from muster import logs, references  # noqa: PLC0415 (see above)
        from muster.config import Config  # noqa: PLC0415 (see above)
        from muster.plugins import collect_checks, load  # noqa: PLC0415 (see above)
        from muster_agent.daemon import serve  # noqa: PLC0415 (see above)
        from muster_agent.decide.plan import announced  # noqa: PLC0415 (see above)
        from muster_agent.runs.launcher import launch  # noqa: PLC0415 (see above)
        from muster_agent.runs.plan_settings import make_plan  # noqa: PLC0415 (see above)

    logs.configure(settings.log, component="agent", node=settings.node)
    plugins = load(Config(settings))
    checks = collect_checks(plugins)
    plan = make_plan(checks, settings.checks, complete=not plugins.failed)
    announced(plan)  # kept from now on, as are the references
    references.shipped()
    with launch(plugins, checks) as launcher:
        serve(settings, plugins, plan, launcher)
