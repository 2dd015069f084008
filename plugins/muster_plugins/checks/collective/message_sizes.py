"""Sizes of messages as people write them, and the series of them that a sweep over sizes takes."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

LARGE_BYTES = 1 << 30
"""From here on bandwidth is what is measured, not latency; the floors of links hold from this size."""

SMALL_BYTES = 1 << 10
"""Up to here latency is what is measured; figures for it are published at this size."""

ELEMENT_BYTES = 4
"""Messages are made of fp32, as those of nccl-tests are unless it is told otherwise."""

MOST_BYTES = 1 << 40
"""More than any device has."""

_PATTERN = r"^[0-9]+(\.[0-9]+)?[KMGkmg]$"

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(value: Any) -> Any:
    """Bytes from a text such as `2M` or `1.5G`, with units of 1024 as in nccl-tests; anything else passes through."""
    if not isinstance(value, str) or not re.match(_PATTERN, value):
        return value
    return int(float(value[:-1]) * _UNITS[value[-1].upper()])


MessageSize = Annotated[
    int,
    Field(ge=ELEMENT_BYTES, le=MOST_BYTES),
    BeforeValidator(parse_size, json_schema_input_type=int | Annotated[str, Field(pattern=_PATTERN)]),
]
"""A number of bytes, or a text such as `2M`."""


def series(begin: int, end: int, factor: int) -> list[int]:
    """`begin`, `begin` x `factor` and so on up to `end`, in bytes."""
    sizes = []
    while begin <= end:
        sizes.append(begin)
        begin *= factor
    return sizes
