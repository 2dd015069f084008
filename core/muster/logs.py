"""Structured logs on stderr: JSON for machines, coloured lines on a terminal.

Local variables are left out of tracebacks in both: they may hold secrets.
"""

import logging
import sys
import time

import structlog
from structlog.typing import Processor

from muster.config import LogSettings
from muster.log_limit import LogLimit

LEFT_OUT = "left_out"
"""The field of a log line that says how many like it were not written in the minute before."""


class _Repeats(logging.Filter):
    """Leaves out what libraries log again and again: peers can make asyncio and aiohttp log as often as they like."""

    def __init__(self) -> None:
        super().__init__()
        self._limit = LogLimit()

    def filter(self, record: logging.LogRecord) -> bool:
        left_out = self._limit.admit(_kind(record), time.monotonic())
        if left_out:
            setattr(record, LEFT_OUT, left_out)
        return left_out is not None


def _kind(record: logging.LogRecord) -> str:
    """Where in the code a line comes from; its text may name the peer, so that no two are alike."""
    error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
    # All that asyncio tells comes from one place; its first line says what it is, and the others about whom.
    about = str(record.msg).partition("\n")[0] if record.name == "asyncio" else ""
    return f"{record.pathname}:{record.lineno} {error} {about}"


def configure(settings: LogSettings, **context: str) -> None:
    """Sets up structlog for this process; `context` (component, node, …) stands on every line.

    What libraries log through the standard library, from warnings upwards, comes out in the same form.
    """
    as_console = settings.format == "console" or (settings.format == "auto" and sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    rendering = _CONSOLE if as_console else _JSON
    structlog.configure(
        processors=[*shared, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(settings.level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(**context)
    _format_standard_logs(shared, rendering)


_CONSOLE: list[Processor] = [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]

_JSON: list[Processor] = [
    structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False)),
    structlog.processors.JSONRenderer(),
]


def _format_standard_logs(shared: list[Processor], rendering: list[Processor]) -> None:
    lines = logging.StreamHandler(sys.stderr)
    lines.addFilter(_Repeats())
    lines.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name, structlog.stdlib.ExtraAdder([LEFT_OUT])],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[lines], force=True)
