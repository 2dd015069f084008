"""Faults that can be put under the checks of a simulated node.

They are put below the checks, into torch itself, in the child process of the run: the checks hold no trace of them and
find them as they would find the real ones.
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
from muster_plugins.torch_device import working_device


class Fault(Section):
    """One entry of `faults` in `[plugins.simulated]`.

    `ecc`, `hot` and `missing` show when devices are read, `corrupt` in what a device computes, stores and sends, `lost`
    when it is given work, `slow_link` in how long this node takes to send; `hang` and `crash` hit the run of the check
    that is named.
    """

    kind: Literal["ecc", "hot", "missing", "corrupt", "lost", "slow_link", "hang", "crash"]
    device: int = Field(0, ge=0, description="Index of the device that is hit")
    every: int = Field(1, ge=1, description="corrupt: of how many results one is wrong")
    factor: float = Field(20.0, gt=1, description="slow_link: how many times longer everything takes")
    check: str | None = Field(None, description="hang, crash: the check that is hit; unset: every one")


def inject(fault: Fault, check: str) -> None:
    """Puts `fault` under a run of `check` in this process, if it concerns that check."""
    if fault.kind in ("hang", "crash"):
        if fault.check in (None, check):
            _PROCESS_FAULTS[fault.kind]()
    elif wrap := _WRAPPED.get((fault.kind, check)):
        wrap(_FAULTY[fault.kind](fault))


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


def _wrap(module: Any, name: str, around: Callable[..., Any]) -> None:
    real = getattr(module, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return around(real, *args, **kwargs)

    setattr(module, name, wrapped)


def _flipping(fault: Fault) -> Callable[..., Any]:
    """One element of a result of the faulty device is wrong; all_reduce leaves its result in its argument."""
    calls = itertools.count(1)

    def around(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        if working_device() == fault.device and next(calls) % fault.every == 0:
            (args[0] if result is None else result).view(-1)[0] += 1
        return result

    return around


def _losing(fault: Fault) -> Callable[..., Any]:
    """The faulty device answers as one that has fallen off the bus does."""

    def around(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if working_device() == fault.device:
            raise RuntimeError("CUDA error: unspecified launch failure")
        return real(*args, **kwargs)

    return around


class _Late:
    """Starts late, and so slows everybody who waits for this node, as a slow link does.

    The first call tells how long a healthy one takes; a quicker one later corrects that.
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


_FAULTY: dict[str, Callable[[Fault], Callable[..., Any]]] = {
    "corrupt": _flipping,
    "lost": _losing,
    "slow_link": lambda fault: _Late(fault.factor),
}
"""How a call of torch goes wrong."""

_WRAPPED: dict[tuple[str, str], Callable[[Callable[..., Any]], None]] = {
    ("corrupt", "gemm"): _wrap_matmul,
    ("lost", "gemm"): _wrap_matmul,
    ("corrupt", "memory"): _wrap_copies,
    ("lost", "memory"): _wrap_copies,
    ("corrupt", "collective"): _wrap_all_reduce,
    ("slow_link", "collective"): _wrap_all_reduce,
    ("corrupt", "training"): _wrap_linear,
    ("lost", "training"): _wrap_linear,
    ("corrupt", "training_ddp"): _wrap_linear,
}
"""By kind of fault and check, which call of torch it is."""
