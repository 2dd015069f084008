"""Parses message sizes as people write them, and builds the series of sizes for a sweep over sizes."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

LARGE_BYTES = 1 << 30
"""From this size on, bandwidth is measured and not latency; the minimum bandwidths of links hold from this size."""

SMALL_BYTES = 1 << 10
"""Up to this size, latency is measured; published figures for latency use this size."""

ELEMENT_BYTES = 4
"""Messages consist of fp32 elements, the default of nccl-tests."""

MOST_BYTES = 1 << 40
"""More than the memory of any device."""

_PATTERN = r"^[0-9]+(\.[0-9]+)?[KMGkmg]$"

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(value: Any) -> Any:
    """Bytes from a text such as `2M` or `1.5G`, with units of 1024 as in nccl-tests; others stay as they are."""
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
