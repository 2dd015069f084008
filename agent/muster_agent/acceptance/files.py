"""Writes a report as JSON, JUnit XML and HTML."""

import contextlib
from pathlib import Path

from muster.acceptance import AcceptanceReport
from muster.errors import Refused, Unavailable
from muster_agent.acceptance.junit import junit


def make_ready(directory: Path, name: str) -> None:
    """Checks that a report of this name can be written; raises Refused or Unavailable. Call it before the runs."""
    if not name or name.startswith(".") or Path(name).name != name:
        raise Refused(f"--report-name {name!r} must be a plain file name")
    probe = _half(directory / f"{name}.html")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink(missing_ok=True)  # another process of the job may have made it
    except OSError as error:
        raise _not_written(directory / name, error) from None


def write(report: AcceptanceReport, directory: Path, name: str) -> list[str]:
    """Writes `name`.json, .xml and .html, each whole or not at all, and returns their paths."""
    return [str(_replaced(directory / f"{name}.{ending}", text)) for ending, text in forms(report).items()]


def forms(report: AcceptanceReport) -> dict[str, str]:
    """The report in each form, by the ending of its file."""
    from muster_agent.acceptance.page import page  # noqa: PLC0415 (`muster check list` works without jinja2)

    return {"json": _data(report), "xml": junit(report), "html": page(report)}


def write_data(report: AcceptanceReport, path: Path) -> None:
    """Writes the report as JSON only. Raises Unavailable if that is not possible."""
    _replaced(path, _data(report))


def _data(report: AcceptanceReport) -> str:
    return report.model_dump_json(indent=2) + "\n"


def _replaced(path: Path, text: str) -> Path:
    half = _half(path)
    try:
        half.write_text(text, encoding="utf-8")
        half.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            half.unlink()
        raise _not_written(path, error) from None
    return path


def _half(path: Path) -> Path:
    return path.with_name(f".{path.name}.half")


def _not_written(path: Path, error: OSError) -> Unavailable:
    return Unavailable(f"cannot write the report to {path}: {error.strerror} (see --report-dir)")
