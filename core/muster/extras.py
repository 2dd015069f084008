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
        "jinja2",
        "prometheus_client",
        "sqlalchemy",
        "tzdata",
    ),
    "images": ("PIL",),
    "kubernetes": ("cryptography", "kubernetes_asyncio"),
    "postgres": ("asyncpg",),
    "torch": ("numpy", "torch"),
    "artifacts": ("obstore",),
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
            f"install them: {_pip_install(*extras)}"
        )


def missing_package(error: BaseException) -> str | None:
    """What to install after an import has failed for lack of an extra; None for any other error."""
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else None
    extra = next((extra for extra, packages in PACKAGES.items() if name in packages), None)
    return None if extra is None else f"{name} is not installed; install it: {_pip_install(extra)}"


def _pip_install(*extras: str) -> str:
    return f"pip install 'gpu-muster[{','.join(extras)}]'"
