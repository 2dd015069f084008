"""`muster agent`: the daemon on a node."""

from muster import logs
from muster.commands.options import load_settings, options_of
from muster.config import Config, Settings
from muster.extras import require_extras
from muster.plugins import collect_checks, load
from muster_agent.runs.launcher import launch
from muster_agent.runs.plan_settings import make_plan


@options_of(load_settings)
def agent(settings: Settings) -> None:
    """Run the agent of this node until stopped."""
    require_extras("agent", "agent")
    logs.configure(settings.log, component="agent", node=settings.node)
    plugins = load(Config(settings))
    checks = collect_checks(plugins)
    plan = make_plan(checks, settings.checks, complete=not plugins.failed)
    with launch(plugins, checks) as launcher:
        # Imported after the fork, because every child keeps everything that was imported before it in its memory.
        from muster_agent.daemon import serve  # noqa: PLC0415

        serve(settings, plugins, plan, launcher)
