"""Finds JSON in what programs say."""

import json
from typing import Any


def json_in(said: str) -> Any:
    """The JSON object in `said`, before and behind which other text may stand; ValueError when there is none."""
    try:
        table, _ = json.JSONDecoder().raw_decode(said[max(said.find("{"), 0) :])
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return table
