"""The packages of the distribution's extras, and a one-line error if they are missing."""

from importlib.util import find_spec

from muster.errors import Unavailable

PACKAGES = {
    "agent": ("jinja2", "prometheus_client", "pynvml"),
    "coordinator": (
        "aiosqlite",
        "alembic",
        "amqtt",
        "cronsim",
        "greenlet",
        "prometheus_client",
        "sqlalchemy",
        "tzdata",
    ),
    "torch": ("numpy", "torch"),
}
"""The packages of each extra that a command needs, by their import names."""


def require_extras(command: str, *extras: str) -> None:
    """Raises Unavailable with the command that installs what is missing. Imports no package; call it first.

    Without it, the missing package shows as a traceback, or in the log of a child process that is restarted forever.
    """
    missing = sorted({package for extra in extras for package in PACKAGES[extra] if find_spec(package) is None})
    if missing:
        raise Unavailable(
            f"`muster {command}` needs packages that are not installed: {', '.join(missing)}; "
            f"install them: pip install 'gpu-muster[{','.join(extras)}]'"
        )
