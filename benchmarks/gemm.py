"""How close the check `gemm` comes to the best that its device can do.

Claim: on a GPU, `gemm` measures at least 0.97 of what a search for the maximum achievable throughput finds, on the
shape where it finds it.

Method: the search multiplies random matrices of every shape from a grid, with nothing but torch, device events and a
cleared cache, a few times each; the best shape is where the median product has most TFLOP/s. Then the search's own loop
and the device's part of `gemm` take turns on that shape, so that heat and clocks are the same for both, and each turn
gives a ratio. `gemm` on its default shape is given as well. One device is used, the first GPU or else the CPU.

Limits: the grid is coarse; a finer one finds a best that is a few percent higher. On the CPU a shared machine makes
single turns differ by more than that.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable

import torch
from benchmarks.figures import Figure, arguments, median_of, publish

from muster_plugins.checks.gemm.formats import FORMATS, Dtype
from muster_plugins.checks.gemm.product import CACHE_BYTES, GemmJob, Shape, multiply
from muster_plugins.shared.torch_device import CPU, Place, working_on

MIN_RATIO = 0.97

EDGES = {"cuda": (2048, 4096, 8192, 16384), "cpu": (256, 512, 1024)}
DEFAULT_SIZE = {"cuda": 8192, "cpu": 512}
DTYPE: dict[str, Dtype] = {"cuda": "bf16", "cpu": "fp32"}


def measure(options: argparse.Namespace) -> list[Figure]:
    """The figures of one device and number format."""
    place = Place(0, "cuda:0", torch.cuda.get_device_name(0)) if torch.cuda.is_available() else CPU
    dtype: Dtype = options.dtype or DTYPE[place.backend]
    edges = options.edges or EDGES[place.backend]
    print(f"{dtype} on {place.model}")
    with working_on(place), torch.no_grad():
        found = {shape: searched(place, dtype, shape, options.tries) for shape in itertools.product(edges, repeat=3)}
        best = max(found, key=lambda shape: found[shape])
        print(f"best of {len(found)} shapes: {best}, {found[best]:.4g} TFLOP/s")
        turns = [in_turn(place, dtype, best, options.iterations) for _ in range(options.turns)]
        square = checked(place, dtype, (DEFAULT_SIZE[place.backend],) * 3, options.iterations)
    ratios = [ours / theirs for theirs, ours in turns]
    return [
        median_of("search, on its best shape", "TFLOP/s", [theirs for theirs, _ in turns]),
        median_of("gemm, on the same shape", "TFLOP/s", [ours for _, ours in turns]),
        median_of("gemm / search", "", ratios, (">=", MIN_RATIO)),
        Figure(what="gemm, on its default shape", unit="TFLOP/s", value=square),
    ]


def in_turn(place: Place, dtype: Dtype, shape: Shape, iterations: int) -> tuple[float, float]:
    """TFLOP/s of the search's loop and of `gemm`, one right after the other."""
    return searched(place, dtype, shape, iterations), checked(place, dtype, shape, iterations)


def checked(place: Place, dtype: Dtype, shape: Shape, iterations: int) -> float:
    """TFLOP/s that `gemm` tells for the device."""
    job = GemmJob(dtype, shape, seed=1, warmup_s=0.1, warmup_iterations=iterations // 2, iterations=iterations)
    return tflops(shape, multiply(place, job).seconds)


def searched(place: Place, dtype: Dtype, shape: Shape, iterations: int) -> float:
    """TFLOP/s of a loop that does nothing but multiply and clear the cache, after half as many rounds of warm-up."""
    m, n, k = shape
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    factor, out_dtype = (getattr(torch, name) for name in FORMATS[dtype][:2])
    left = torch.randn((m, k), device=place.torch_name).to(factor)
    right = torch.randn((n, k), device=place.torch_name).to(factor).t()
    out = torch.empty((m, n), dtype=out_dtype, device=place.torch_name)
    cache = torch.empty(CACHE_BYTES[place.backend], dtype=torch.int8, device=place.torch_name)
    one = torch.ones((), device=place.torch_name)

    def work() -> None:
        if dtype == "fp8":
            torch._scaled_mm(left, right, one, one, out_dtype=out_dtype, use_fast_accum=True, out=out)
        else:
            torch.matmul(left, right, out=out)

    clock = on_device if place.backend == "cuda" else on_host
    return tflops(shape, clock(work, cache.zero_, iterations + iterations // 2)[iterations // 2 :])


def on_device(work: Callable[[], object], before: Callable[[], object], times: int) -> list[float]:
    """Seconds of each call by the device's clock."""
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(times)]  # type: ignore[no-untyped-call]  # torch leaves it without types
    for start, end in events:
        before()
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1000 for start, end in events]


def on_host(work: Callable[[], object], before: Callable[[], object], times: int) -> list[float]:
    """Seconds of each call by the host's clock."""
    seconds = []
    for _ in range(times):
        before()
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return seconds


def tflops(shape: Shape, seconds: list[float]) -> float:
    """TFLOP/s of the median product."""
    m, n, k = shape
    return 2 * m * n * k / statistics.median(seconds) / 1e12


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--dtype", choices=[*FORMATS], help="number format; bf16 on a GPU, fp32 on the CPU")
    parser.add_argument("--edges", type=int, nargs="+", help="edges of the matrices that the search combines")
    parser.add_argument("--tries", type=int, default=10, help="timed products of each shape in the search")
    parser.add_argument("--iterations", type=int, default=100, help="timed products of a turn")
    parser.add_argument("--turns", type=int, default=7, help="how often both are measured")
    options = parser.parse_args()
    publish(options, measure(options))


if __name__ == "__main__":
    main()
