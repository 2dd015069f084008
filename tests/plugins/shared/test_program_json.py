"""JSON in what programs say."""

import pytest

from muster_plugins.shared.program_json import json_in


@pytest.mark.parametrize("said", ['{"a": 1}', 'fio: a note\n{"a": 1}', '{"a": 1}\nbye {"b": 2}\n'])
def test_the_first_object_is_found_among_other_text(said):
    """Programs put notes before and behind their report."""
    assert json_in(said) == {"a": 1}


@pytest.mark.parametrize("said", ["", "no report", '{"a": ', '{"a":' * 100_000])
def test_what_is_no_json_is_a_value_error(said):
    """Nothing, something else, half a report, and what would exhaust the parser's stack."""
    with pytest.raises(ValueError):
        json_in(said)
