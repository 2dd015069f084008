"""Finds JSON in the output of programs."""

import json
from typing import Any


def json_in(said: str) -> Any:
    """The JSON object in `said`, which may have other text around it. Raises ValueError if there is none."""
    try:
        table, _ = json.JSONDecoder().raw_decode(said[max(said.find("{"), 0) :])
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return table
