"""The reference is generated; the files in the repository are what the code says now."""

from pathlib import Path

import generate
import pytest
from generator.chart import DAEMONSET, chart
from generator.diagrams import DIAGRAMS

from muster import hookspecs
from muster.config import Settings

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.parametrize("name", generate.PAGES)
def test_page_is_up_to_date(name):
    """After a change of hooks, checks or settings, `make docs` has been called."""
    assert (DOCS / name).read_text(encoding="utf-8") == generate.PAGES[name](), "call `make docs`"


@pytest.mark.parametrize("name", generate.MANIFESTS)
def test_manifest_is_up_to_date(name):
    """After a change of the calls to Kubernetes or of the alert rules, `make docs` has been called."""
    assert (DAEMONSET / name).read_text(encoding="utf-8") == generate.MANIFESTS[name](), "call `make docs`"


def test_chart_is_up_to_date():
    """After a change of the manifests for kustomize, `make docs` has been called; no template is left from before."""
    there = {path.name: path.read_text(encoding="utf-8") for path in generate.CHART.iterdir()}
    del there["NOTES.txt"]
    assert there == chart(), "call `make docs`, and remove templates that it no longer writes"


def test_diagrams_are_up_to_date():
    """After a change of a machine's table, `make docs` has been called."""
    assert generate.ARCHITECTURE.read_text(encoding="utf-8") == generate.architecture(), "call `make docs`"
    assert all(f"<!-- generated: {name} -->" in generate.architecture() for name in ("house", *DIAGRAMS))


def test_every_page_is_generated():
    """Nobody writes a page of the reference by hand."""
    assert {f"reference/{path.name}" for path in (DOCS / "reference").glob("*.md")} <= set(generate.PAGES)


@pytest.mark.parametrize("hook", [*hookspecs.CONTRIBUTE, *hookspecs.NOTIFY])
def test_every_hook_is_explained(hook):
    """A hook has a docstring and a place in the reference."""
    assert getattr(hookspecs, hook).__doc__
    assert f"### {hook}\n" in (DOCS / "reference" / "hooks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("setting", Settings.model_fields)
def test_every_setting_is_in_the_reference(setting):
    """No setting is left out."""
    assert f"`{setting}" in (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")


def test_every_object_of_the_api_says_what_its_values_are():
    """Also where its keys have a pattern, as names of metrics and nodes have."""
    assert "| object |" not in (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
