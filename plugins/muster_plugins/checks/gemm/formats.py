"""The number formats of the multiplied matrices, and the devices that support them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from muster_plugins.shared.torch_device import Place

Dtype = Literal["fp32", "tf32", "bf16", "fp16", "fp8"]


EDGES = tuple(1 << power for power in range(6, 19))
"""Powers of two, from the smallest allowed edge of a matrix to the largest."""


class Format(NamedTuple):
    """A number format. `factor` and `product` are torch's names of the types.

    `capability` is the lowest compute capability with tensor cores for the format, from the CUDA programming guide;
    fp32 needs none. fp8 is e4m3, which torch can multiply from 8.9 on.
    """

    factor: str
    product: str
    capability: tuple[int, int]
    on_cpu: bool = True


FORMATS: dict[Dtype, Format] = {
    "fp32": Format("float32", "float32", (0, 0)),
    "tf32": Format("float32", "float32", (8, 0), on_cpu=False),
    "bf16": Format("bfloat16", "bfloat16", (8, 0)),
    "fp16": Format("float16", "float16", (7, 0)),
    "fp8": Format("float8_e4m3fn", "bfloat16", (8, 9)),
}


def why_not(dtypes: Iterable[Dtype], found: list["Place"]) -> dict[str, str]:
    """The formats that at least one of the devices does not support, with the reason."""
    reasons = ((dtype, _lacks(dtype, found)) for dtype in dtypes)
    return {dtype: reason for dtype, reason in reasons if reason is not None}


def _lacks(dtype: Dtype, found: list["Place"]) -> str | None:
    import torch  # noqa: PLC0415  only child processes may load torch

    if found[0].backend == "cpu":
        return None if FORMATS[dtype].on_cpu else "the CPU does not support it"
    needed = FORMATS[dtype].capability
    least = min(torch.cuda.get_device_capability(place.torch_name) for place in found)
    if least >= needed:
        return None
    return "needs compute capability {}.{}, here it is {}.{}".format(*needed, *least)
