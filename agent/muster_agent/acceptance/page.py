"""A report as one HTML file without other files: no script, no font, no network."""

from importlib import resources

from jinja2 import Environment, StrictUndefined

from muster.acceptance import AcceptanceReport
from muster.instants import instant_text
from muster.run_plots import HEIGHT, WIDTH, bars, curves
from muster.units import metric_text
from muster_agent.acceptance.terminal import finding_line, no_gpu


def page(report: AcceptanceReport) -> str:
    """The page."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(bars=bars, curves=curves, finding=finding_line, no_gpu=no_gpu)
    environment.filters.update(instant=instant_text, metric=metric_text)
    text = resources.files("muster_agent.acceptance").joinpath("page.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(text).render(report=report, width=WIDTH, height=HEIGHT)
