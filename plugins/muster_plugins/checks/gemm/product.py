"""Measures on one device how long matrix products take and whether they are right.

The timed products use random numbers, because a device draws less power on regular numbers and therefore runs faster.
The same two matrices are multiplied again and again, and the bits of the product must always be the same: cuBLAS gives
the same bits in every run on GPUs of the same architecture with the same number of multiprocessors (cuBLAS
documentation, "Results Reproducibility"). Therefore the sum of these bits is a fingerprint, within the run and among
the devices of a fleet.

Some devices always make the same mistake. Products with a known value show it: they multiply matrices of -1, 0 and 1
that are so sparse that every sum stays below 256 and is exact in any type and any order of addition. The sum of each
column of such a product is known in advance, so a single wrong element anywhere shows.
"""

import hashlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from muster_plugins.checks.gemm.formats import EDGES, FORMATS, Dtype
from muster_plugins.shared.torch_device import Place, free_bytes, time_each, warm_up
from muster_plugins.shared.torch_failures import NotEnoughMemoryError

if TYPE_CHECKING:
    import torch

CACHE_BYTES = {"cuda": 256 << 20, "cpu": 0}
"""Bytes that are zeroed between products, so that no product finds its factors in the cache: stas00/ml-engineering uses
the same size for every GPU. The speed of a CPU is not compared with other nodes.
"""

SCRATCH_BYTES = 12
"""Bytes for every element of the largest matrix, while random numbers become matrices and while products are checked:
the sums use a copy with eight bytes per element while the last product of another kind still exists.
"""

Shape = tuple[int, int, int]
"""Rows, columns and the summed dimension: m, n, k."""


class GemmJob(NamedTuple):
    """The product that a device computes, and the number of repetitions."""

    dtype: Dtype
    shape: Shape
    seed: int
    warmup_s: float
    warmup_iterations: int
    iterations: int


class GemmOutcome(NamedTuple):
    """Seconds of each timed product, and the number of bad products by kind.

    `changed` products differ in bits from the first, `not_finite` products hold an infinity or NaN, and `wrong` of the
    `proofs` products with known sums were wrong.
    """

    seconds: list[float]
    changed: int
    not_finite: int
    proofs: int
    wrong: int
    fingerprint: str


def multiply(place: Place, job: GemmJob) -> GemmOutcome:
    """Runs the job on the device. NotEnoughMemoryError says which size would fit."""
    import torch  # noqa: PLC0415  only child processes may load torch

    _must_fit(place, job)
    torch.backends.cuda.matmul.allow_tf32 = job.dtype == "tf32"
    # A product that is split along the summed dimension would be added up in the narrow type, which rounds.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    generator = torch.Generator(place.torch_name).manual_seed(job.seed)
    seconds, product_check = _timed(place, job, generator)
    proofs = max(1, job.iterations // 10)  # A device that is always wrong shows it in a few products.
    return GemmOutcome(
        seconds=seconds,
        changed=int(product_check.changed.item()),
        not_finite=int(product_check.not_finite.item()),
        proofs=proofs,
        wrong=_count_wrong(place, job, generator, proofs),
        fingerprint=product_check.fingerprint(),
    )


def _must_fit(place: Place, job: GemmJob) -> None:
    free = free_bytes(place)
    needed = _needed_bytes(job.dtype, job.shape, place.backend)
    if needed > free:
        fitting = [size for size in EDGES if _needed_bytes(job.dtype, (size, size, size), place.backend) <= free]
        hint = f"size {fitting[-1]} in {job.dtype} fits" if fitting else "no size fits"
        raise NotEnoughMemoryError(needed, free, hint)


def _needed_bytes(dtype: Dtype, shape: Shape, backend: str) -> int:
    import torch  # noqa: PLC0415  only child processes may load torch

    m, n, k = shape
    factor = getattr(torch, FORMATS[dtype].factor).itemsize
    product = getattr(torch, FORMATS[dtype].product).itemsize
    return int(factor * k * (m + n) + product * m * n + SCRATCH_BYTES * max(m * k, n * k, m * n) + CACHE_BYTES[backend])


class _ProductCheck:
    """Remembers the bits of a product and counts errors in later ones without waiting for the device."""

    def __init__(self, product: "torch.Tensor") -> None:
        self._product = product
        self._first = self._sums()
        self.changed = self._first.new_zeros(())
        self.not_finite = self._first.new_zeros(())

    def check(self) -> None:
        """Checks the current product."""
        self.changed += (self._sums() != self._first).any()
        self.not_finite += ~self._product.isfinite().all()

    def fingerprint(self) -> str:
        """The bits of the first product as 16 hexadecimal digits."""
        return hashlib.sha256(self._first.cpu().numpy().tobytes()).hexdigest()[:16]

    def _sums(self) -> "torch.Tensor":
        """For each column the sum of its elements' bits, read as whole numbers."""
        import torch  # noqa: PLC0415  only child processes may load torch

        bits = {2: torch.int16, 4: torch.int32}[self._product.itemsize]
        return self._product.view(bits).sum(0, dtype=torch.int64)


def _timed(place: Place, job: GemmJob, generator: "torch.Generator") -> tuple[list[float], _ProductCheck]:
    import torch  # noqa: PLC0415  only child processes may load torch

    m, n, k = job.shape
    left, right = _random((m, k), job, generator), _random((n, k), job, generator).t()
    product = _empty_product(place, job)
    cache = torch.empty(CACHE_BYTES[place.backend], dtype=torch.int8, device=place.torch_name)
    into = _multiplier(place, job.dtype)

    def work() -> None:
        into(left, right, product)

    def refresh() -> None:
        product_check.check()
        product.fill_(math.nan)  # so that an element that is never written is NaN
        cache.zero_()

    warm_up(place, work, job.warmup_s)
    product_check = _ProductCheck(product)
    seconds = time_each(place, work, job.warmup_iterations + job.iterations, between=refresh)
    product_check.check()
    return seconds[job.warmup_iterations :], product_check


def _random(shape: tuple[int, int], job: GemmJob, generator: "torch.Generator") -> "torch.Tensor":
    """Normally distributed numbers; on the CPU, whose libraries may add in any order, whole numbers with exact sums."""
    import torch  # noqa: PLC0415  only child processes may load torch

    if generator.device.type == "cpu":
        numbers = torch.randint(-8, 9, shape, generator=generator, dtype=torch.float32)
    else:
        numbers = torch.randn(shape, generator=generator, device=generator.device)
    dtype: torch.dtype = getattr(torch, FORMATS[job.dtype].factor)
    return numbers.to(dtype)


def _empty_product(place: Place, job: GemmJob) -> "torch.Tensor":
    import torch  # noqa: PLC0415  only child processes may load torch

    m, n, _ = job.shape
    return torch.empty((m, n), dtype=getattr(torch, FORMATS[job.dtype].product), device=place.torch_name)


def _multiplier(place: Place, dtype: Dtype) -> Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], object]:
    """A function that multiplies its first argument by the second (transposed, as fp8 needs it) into the third."""
    import torch  # noqa: PLC0415  only child processes may load torch

    if dtype != "fp8":
        return lambda left, right, out: torch.matmul(left, right, out=out)
    one = torch.ones((), device=place.torch_name)
    return lambda left, right, out: torch._scaled_mm(
        left, right, scale_a=one, scale_b=one, out_dtype=out.dtype, use_fast_accum=True, out=out
    )


def _count_wrong(place: Place, job: GemmJob, generator: "torch.Generator", proofs: int) -> int:
    """The number of wrong products among `proofs` products with known column sums."""
    import torch  # noqa: PLC0415  only child processes may load torch

    m, n, k = job.shape
    density = min(0.5, 32 / math.sqrt(k))  # keeps the sums within eight standard deviations of 256
    left, right = _ternary((m, k), density, generator), _ternary((n, k), density, generator)
    known = _column_sums(left, right)
    factor: torch.dtype = getattr(torch, FORMATS[job.dtype].factor)
    # torch converts to fp8 only from floating-point types
    left, right = left.half().to(factor), right.half().to(factor).t()
    product = _empty_product(place, job)
    into = _multiplier(place, job.dtype)
    wrong = torch.zeros((), dtype=torch.int64, device=place.torch_name)
    for _ in range(proofs):
        product.fill_(math.nan)
        into(left, right, product)
        wrong += (product.sum(0, dtype=torch.float64) != known).any()
    return int(wrong.item())


def _ternary(shape: tuple[int, int], density: float, generator: "torch.Generator") -> "torch.Tensor":
    """-1, 0 and 1 as small whole numbers; the share `density` of them is not 0."""
    import torch  # noqa: PLC0415  only child processes may load torch

    draws = torch.rand(shape, generator=generator, device=generator.device)
    return (draws < density / 2).to(torch.int8).sub_((draws > 1 - density / 2).to(torch.int8))


def _column_sums(left: "torch.Tensor", right: "torch.Tensor") -> "torch.Tensor":
    """Column sums of the product of `left` and the transposed `right`, computed by blocks of rows to save memory."""
    import torch  # noqa: PLC0415  only child processes may load torch

    sums = left.sum(0, dtype=torch.float64)
    return torch.cat([rows.double() @ sums for rows in torch.split(right, 1024)])
