"""Structured logs on stderr: JSON for machines, lines for people, which have colours where every command prints them.

Local variables are left out of tracebacks in both: they may hold secrets.
"""

import io
import logging
import sys
import time
from contextlib import suppress
from typing import Any, TextIO, cast

from muster.config import LogSettings
from muster.hidden_package import absent
from muster.log_limit import LogLimit
from muster.terminal import for_terminal, has_colours

# structlog loads rich wherever it is installed, and typer installs it everywhere: 5 MiB and 45 ms in each process, for
# tracebacks with local variables, which muster does not write. structlog has no setting for this.
with absent("rich"):
    import structlog
    from structlog.typing import EventDict, ExcInfo, Processor

LEFT_OUT = "left_out"
"""The field with the number of similar lines that were left out in the minute before."""


class _LossyStream:
    """A stream that loses lines where writing them fails, as on a full disk. No daemon ends because of its log."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


class _RepeatFilter(logging.Filter):
    """Leaves out repeated lines of libraries. Peers can make asyncio and aiohttp log as often as they like."""

    def __init__(self) -> None:
        super().__init__()
        self._limit = LogLimit()

    def filter(self, record: logging.LogRecord) -> bool:
        left_out = self._limit.admit(_kind(record), time.monotonic())
        if left_out:
            setattr(record, LEFT_OUT, left_out)
        return left_out is not None


def _kind(record: logging.LogRecord) -> str:
    """The kind of a line: its place in the code. Its text may name a peer and differ each time."""
    error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
    # All lines of asyncio come from one place. Their first line says what happened, the others name the peer.
    about = str(record.msg).partition("\n")[0] if record.name == "asyncio" else ""
    return f"{record.pathname}:{record.lineno} {error} {about}"


def configure(settings: LogSettings, **context: str) -> None:
    """Sets up structlog for this process; every line contains `context` (component, node, …).

    Lines that libraries log through the standard library, from warnings upwards, get the same form.
    """
    as_console = settings.format == "console" or (settings.format == "auto" and sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    rendering = _for_people(with_colours=has_colours(sys.stderr)) if as_console else _JSON
    out = cast("TextIO", _LossyStream(sys.stderr))
    structlog.configure(
        processors=[*shared, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(settings.level),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(**context)
    _format_standard_logs(out, shared, rendering)


def _quote_unprintable(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Replaces texts with control characters by Python literals: they could control a terminal or fake a line."""
    return {
        key: repr(value) if isinstance(value, str) and not value.isprintable() else value
        for key, value in event.items()
    }


def _write_traceback(out: TextIO, error: ExcInfo) -> None:
    text = io.StringIO()
    structlog.dev.plain_traceback(text, error)
    out.write(for_terminal(text.getvalue()))


def _for_people(*, with_colours: bool) -> list[Processor]:
    renderer = structlog.dev.ConsoleRenderer(colors=with_colours, exception_formatter=_write_traceback)
    return [_quote_unprintable, renderer]


_JSON: list[Processor] = [
    structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False)),
    structlog.processors.JSONRenderer(),
]


def _format_standard_logs(out: TextIO, shared: list[Processor], rendering: list[Processor]) -> None:
    lines = logging.StreamHandler(out)
    lines.addFilter(_RepeatFilter())
    lines.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name, structlog.stdlib.ExtraAdder([LEFT_OUT])],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[lines], force=True)
