"""`muster agent`: the daemon on a node. Its help needs none of the imports inside the function."""

from typing import TYPE_CHECKING

from muster.commands.options import load_settings, options_of
from muster.extras import require_extras
from muster.garbage import no_collection

if TYPE_CHECKING:
    from muster.config import Settings


@options_of(load_settings)
def agent(settings: "Settings") -> None:
    """Run the agent of this node until stopped."""
    require_extras("agent", "agent")
    with no_collection():
        from muster import logs  # noqa: PLC0415 (see above)
        from muster.config import Config  # noqa: PLC0415 (see above)
        from muster.plugins import collect_checks, load  # noqa: PLC0415 (see above)
        from muster_agent.runs.launcher import launch  # noqa: PLC0415 (see above)
        from muster_agent.runs.plan_settings import make_plan  # noqa: PLC0415 (see above)

    logs.configure(settings.log, component="agent", node=settings.node)
    plugins = load(Config(settings))
    checks = collect_checks(plugins)
    plan = make_plan(checks, settings.checks, complete=not plugins.failed)
    with launch(plugins, checks) as launcher:
        # Imported after the fork, because every child keeps everything that was imported before it in its memory.
        with no_collection():
            from muster_agent.daemon import serve  # noqa: PLC0415

        serve(settings, plugins, plan, launcher)
