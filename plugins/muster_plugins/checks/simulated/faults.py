"""Injects faults below the checks of a simulated node.

The faults change torch itself, in the child process of the run. The checks do not know of them and find them as they
would find real ones.
"""

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from muster import Section


class Fault(Section):
    """One entry of `faults` in `[plugins.simulated]`.

    - `ecc`, `hot` and `missing` show when devices are read.
    - `corrupt` shows in what a device computes, stores and sends; `lost` when the device gets work.
    - `slow_link` slows messages in both directions, `slow_send` only those that this node sends, `slow_rail` only those
      of the named device.
    - `hang` and `crash` hit the run of the named check.
    """

    kind: Literal["ecc", "hot", "missing", "corrupt", "lost", "slow_link", "slow_rail", "slow_send", "hang", "crash"]
    device: int = Field(0, ge=0, description="Index of the faulty device")
    every: int = Field(1, ge=1, description="corrupt: one wrong result in this number of results")
    factor: float = Field(20.0, gt=1, description="slow_link, slow_rail, slow_send: factor by which they slow down")
    check: str | None = Field(None, description="hang, crash: the affected check; unset: every check")


Faulty = Callable[[Fault], Callable[..., Any]]
"""A faulty call of torch. It gets the real function and the arguments of the call."""

Wrap = Callable[[Callable[..., Any]], None]
"""Replaces a function of torch by a faulty one."""

_HEALTHY_S_PER_BYTE = 1e-9
"""About the time of a message between two processes on the same host over gloo. It cannot be measured: a small message
counts as sent when it is in the kernel's buffers."""


def inject(fault: Fault, check: str) -> None:
    """Injects `fault` into a run of `check` in this process, if it concerns that check."""
    if fault.kind in _PROCESS_FAULTS and fault.check in (None, check):
        _PROCESS_FAULTS[fault.kind]()
    for wrap, faulty in _WRAPPED.get((fault.kind, check), ()):
        wrap(faulty(fault))


def _hang() -> None:
    threading.Event().wait()


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


_PROCESS_FAULTS: dict[str, Callable[[], None]] = {"hang": _hang, "crash": _crash}


def _wrap_matmul(around: Callable[..., Any]) -> None:
    import torch  # noqa: PLC0415  the check that runs in this process is about to import it anyway

    _wrap(torch, "matmul", around)


def _wrap_linear(around: Callable[..., Any]) -> None:
    import torch  # noqa: PLC0415  the check that runs in this process is about to import it anyway

    _wrap(torch.nn.functional, "linear", around)


def _wrap_copies(around: Callable[..., Any]) -> None:
    import torch  # noqa: PLC0415  the check that runs in this process is about to import it anyway

    _wrap(torch.Tensor, "copy_", around)


def _wrap_all_reduce(around: Callable[..., Any]) -> None:
    import torch.distributed as dist  # noqa: PLC0415  the check that runs in this process is about to import it anyway

    _wrap(dist, "all_reduce", around)


def _wrap_point_to_point(around: Callable[..., Any]) -> None:
    import torch.distributed as dist  # noqa: PLC0415  the check that runs in this process is about to import it anyway

    _wrap(dist, "batch_isend_irecv", around)


def _wrap(module: Any, name: str, around: Callable[..., Any]) -> None:
    real = getattr(module, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return around(real, *args, **kwargs)

    setattr(module, name, wrapped)


def _on_device(faulty: Faulty) -> Faulty:
    """Limits a fault to the work of the faulty device."""

    def on_device(fault: Fault) -> Callable[..., Any]:
        from muster_plugins.shared.torch_device import working_device  # noqa: PLC0415 (memory that only a run should spend)

        hit = faulty(fault)

        def around(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            return hit(real, *args, **kwargs) if working_device() == fault.device else real(*args, **kwargs)

        return around

    return on_device


def _flipping(fault: Fault) -> Callable[..., Any]:
    """Makes one element of a result wrong. all_reduce has its result in its argument."""
    calls = itertools.count(1)

    def around(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        if next(calls) % fault.every == 0:
            (args[0] if result is None else result).view(-1)[0] += 1
        return result

    return around


def _losing(fault: Fault) -> Callable[..., Any]:
    """Raises the error of a device that has fallen off the bus."""

    def around(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("CUDA error: unspecified launch failure")

    return around


class _Late:
    """Starts late, and so slows every rank that waits for this node, like a slow link.

    The first call shows how long a healthy one takes; a quicker one later corrects that.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._healthy_s: float | None = None

    def __call__(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._healthy_s is not None:
            time.sleep((self._factor - 1) * self._healthy_s)
        start = time.perf_counter()
        result = real(*args, **kwargs)
        took_s = time.perf_counter() - start
        self._healthy_s = took_s if self._healthy_s is None else min(took_s, self._healthy_s)
        return result


def _late(fault: Fault) -> Callable[..., Any]:
    return _Late(fault.factor)


def _late_messages(fault: Fault) -> Callable[..., Any]:
    """Delays every message of this rank by `factor` times its healthy duration."""

    def around(real: Callable[..., Any], operations: Any) -> Any:
        size_bytes = sum(operation.tensor.nbytes for operation in operations)
        time.sleep((fault.factor - 1) * size_bytes * _HEALTHY_S_PER_BYTE)
        return real(operations)

    return around


def _late_sends(fault: Fault) -> Callable[..., Any]:
    """Delays messages that this rank sends, but not those that it only receives."""
    import torch.distributed as dist  # noqa: PLC0415  the check that runs in this process is about to import it anyway

    late = _late_messages(fault)

    def around(real: Callable[..., Any], operations: Any) -> Any:
        sends = any(operation.op is dist.isend for operation in operations)
        return late(real, operations) if sends else real(operations)

    return around


_WRAPPED: dict[tuple[str, str], tuple[tuple[Wrap, Faulty], ...]] = {
    ("corrupt", "gemm"): ((_wrap_matmul, _on_device(_flipping)),),
    ("lost", "gemm"): ((_wrap_matmul, _on_device(_losing)),),
    ("corrupt", "memory"): ((_wrap_copies, _on_device(_flipping)),),
    ("lost", "memory"): ((_wrap_copies, _on_device(_losing)),),
    ("corrupt", "collective"): ((_wrap_all_reduce, _on_device(_flipping)),),
    ("slow_link", "collective"): ((_wrap_all_reduce, _late), (_wrap_point_to_point, _late_messages)),
    ("slow_rail", "collective"): (
        (_wrap_all_reduce, _on_device(_late)),
        (_wrap_point_to_point, _on_device(_late_messages)),
    ),
    ("slow_send", "collective"): ((_wrap_all_reduce, _late), (_wrap_point_to_point, _late_sends)),
    ("corrupt", "training"): ((_wrap_linear, _on_device(_flipping)),),
    ("lost", "training"): ((_wrap_linear, _on_device(_losing)),),
    ("corrupt", "training_ddp"): ((_wrap_linear, _on_device(_flipping)),),
    ("corrupt", "inference"): ((_wrap_linear, _on_device(_flipping)),),
    ("lost", "inference"): ((_wrap_linear, _on_device(_losing)),),
}
"""The faulty calls of torch by kind of fault and check."""
