"""Runs parts of the checks on the first GPU, in a process of its own, and makes things go wrong there.

The arguments are the name of a function and what it takes; what it gives is printed as JSON.
"""

import functools
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from muster_plugins.checks.collective.operations import MessageBuffers, PreparedCollective
from muster_plugins.checks.collective.peers import everyone
from muster_plugins.checks.gemm import product as gemm_product
from muster_plugins.checks.gemm.formats import FORMATS, why_not
from muster_plugins.checks.memory import pattern as memory_pattern
from muster_plugins.checks.training import data as training_data
from muster_plugins.checks.training import loop as training_loop
from muster_plugins.checks.training.task import TaskParams, planned
from muster_plugins.shared.torch_device import Place, working_on

PLACE = Place(0, "cuda:0", torch.cuda.get_device_name(0))

_WORD = 123
"""The word of its block in which a bit is flipped."""


def products(every: str) -> Any:
    """By format, what comes of 20 products and 2 with known sums; in every so many (0: none) an element is doubled."""
    real, calls = gemm_product._multiplier, itertools.count(1)

    def faulty(place: Place, dtype: Any) -> Callable[..., None]:
        into = real(place, dtype)

        def multiply(left: torch.Tensor, right: torch.Tensor, out: torch.Tensor) -> None:
            into(left, right, out)
            if int(every) and next(calls) % int(every) == 0:
                out[-1, -1] = 2 * out[-1, -1] + 1

        return multiply

    gemm_product._multiplier = faulty
    formats = [dtype for dtype in FORMATS if not why_not([dtype], [PLACE])]
    jobs = [gemm_product.GemmJob(dtype, (1024, 2048, 4096), 1, 0, 0, 20) for dtype in formats]
    return {job.dtype: gemm_product.multiply(PLACE, job)._asdict() for job in jobs}


def flipped_bit() -> Any:
    """Between writing and reading, one bit of one word of a GiB changes."""
    blocks: list[torch.Tensor] = []
    allocate, expected, calls = memory_pattern._allocate, memory_pattern._expected, itertools.count()

    def allocated(place: Place, job: memory_pattern.PatternJob) -> list[torch.Tensor]:
        blocks.extend(allocate(place, job))
        return blocks

    def disturbed(pattern: Any, block: torch.Tensor, seed: int) -> torch.Tensor:
        if next(calls) == len(blocks):  # all are written, none is read yet
            blocks[-1][_WORD] ^= 1 << 40
        return expected(pattern, block, seed)

    memory_pattern._allocate, memory_pattern._expected = allocated, disturbed
    job = memory_pattern.PatternJob(share=0.9, limit_bytes=1 << 30, patterns=("random",), rounds=1, seed=1)
    verified = memory_pattern.verify(PLACE, job)
    offset = (len(blocks) - 1) * blocks[0].nbytes + _WORD * memory_pattern.WORD_BYTES
    address = blocks[-1].data_ptr() + _WORD * memory_pattern.WORD_BYTES
    return verified._asdict() | {"offset": offset, "address": address}


def large_message(gib: str) -> Any:
    """A message of more elements than 32 bits count: what is found wrong in it, before and after one is, and memory."""
    desk = MessageBuffers(everyone(0, 1), (int(gib) << 30) // 4, PLACE.torch_name)
    buffer = desk.buffer(desk.elements)
    exercise = PreparedCollective(buffer, [desk.pattern(0)], buffer, [desk.total()], lambda: None)
    exercise.refill()
    before = int(exercise.wrong())
    buffer[-2] += 1
    after = int(exercise.wrong())
    return {"before": before, "after": after, "besides": torch.cuda.max_memory_allocated() - buffer.nbytes}


def host_memory() -> Any:
    """Bytes that the limit on a run's memory counts, before and after CUDA, 8 GiB of the device and 1 GiB pinned."""
    before = _counted_bytes()
    on_device = torch.zeros(8 << 30, dtype=torch.int8, device=PLACE.torch_name)
    pinned = torch.zeros(1 << 30, dtype=torch.int8, pin_memory=True)
    torch.cuda.synchronize()
    return {"before": before, "after": _counted_bytes(), "there": on_device.nbytes + pinned.nbytes}


def _counted_bytes() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData"))


def overflow() -> Any:
    """Losses of a training in fp16 whose scale is so high at first that many steps have to be left out."""
    torch.amp.GradScaler = functools.partial(torch.amp.GradScaler, init_scale=2.0**40)  # type: ignore[misc, assignment]  # it is only called
    training_loop.make_repeatable(PLACE.backend)
    plan = planned(TaskParams(precision="fp16", warmup=0, iterations=100), PLACE.backend)
    trained = training_loop.train(PLACE, training_data.prepared(plan, None))
    assert isinstance(trained, training_loop.Trained), trained
    return trained.losses


FUNCTIONS: tuple[Callable[..., Any], ...] = (products, flipped_bit, large_message, host_memory, overflow)

if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    function = next(function for function in FUNCTIONS if function.__name__ == name)
    with working_on(PLACE):
        print(json.dumps(function(*arguments)))
