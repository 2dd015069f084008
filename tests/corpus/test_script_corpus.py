"""What is shown of scripts that have failed, over real outputs."""

from tests.cases import cases
from tests.corpus.excerpts import script_excerpts

from muster_plugins.checks.script.output import read_output


@cases("excerpt", script_excerpts(), ids=lambda excerpt: excerpt.name)
def test_the_line_that_an_expert_would_show_is_the_summary(excerpt):
    """Whether passes, headings or nothing stand before it."""
    assert read_output(excerpt.text, performance_data=True, failed=True).summary == excerpt.summary
