"""Timed training on one device, step by step. Import this only in child processes, because it imports torch."""

import copy
import math
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils import deterministic

from muster_plugins.checks.training.data import BATCHES, Task, checksum
from muster_plugins.checks.training.problems import TrainingProblem
from muster_plugins.checks.training.task import LearningRule, learning_rule
from muster_plugins.checks.training.utilisation import Stretch
from muster_plugins.shared.torch_device import Place, processor, settle, time_each
from muster_plugins.shared.torch_failures import of_the_device, ran_out_of_memory

_AUTOCAST = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Trained(NamedTuple):
    """The result of a training: the loss of every step, the seconds of each measured step, and when all of them ran.

    `checksum` covers losses and final weights; it is equal on equal devices with equal software. `weights` covers the
    weights alone.
    """

    losses: list[float]
    seconds: list[float]
    measured: Stretch
    checksum: str
    weights: str

    @property
    def total_s(self) -> float:
        """Seconds of all measured steps."""
        return self.measured.end - self.measured.start


def make_repeatable(backend: str) -> None:
    """Configures this process so that the same training ends with the same bits each time."""
    if backend == "cpu":
        torch.set_num_threads(1)  # The sums do not depend on the number of cores, and ranks do not compete for them.
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # the value that cuBLAS requires, as torch documents
    torch.use_deterministic_algorithms(True)
    # All memory is written here before it is read.
    deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # torch adds it to the module later


def software(backend: str) -> str:
    """The software that, together with the device, determines the bits of the result."""
    if backend == "cpu":
        return f"torch {torch.__version__}, {processor()}"
    cudnn = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]  # torch leaves it without types
    return f"torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {cudnn}"


def train_repeatedly(place: Place, task: Task) -> list[Trained] | TrainingProblem:
    """The results of as many equal trainings as the plan has, or the problem of one of them."""
    trained = []
    for _ in range(task.plan.repeats):
        one = train(place, task)
        if isinstance(one, TrainingProblem):
            return one
        trained.append(one)
    return trained


def train(place: Place, task: Task) -> Trained | TrainingProblem:
    """Trains once on one device. If memory is short, the problem says what would fit."""
    try:
        return TrainingLoop(place, task).run()
    except (RuntimeError, MemoryError) as error:
        if failed := of_the_device(error):
            return TrainingProblem("device_failed", failed, place.index)
        if not ran_out_of_memory(error):
            raise
    return TrainingProblem(
        "does_not_fit", _what_fits(place, task), place.index
    )  # the memory of the failed training is freed here


class TrainingLoop:
    """A network in training. `around` wraps it once it is on the device; `first` is the index of its first batch."""

    def __init__(
        self,
        place: Place,
        task: Task,
        around: Callable[[nn.Module], nn.Module] = lambda network: network,
        first: int = 0,
    ) -> None:
        self._place, self._plan, self._first = place, task.plan, first
        self._network = around(copy.deepcopy(task.network).to(place.torch_name))
        self._weights: list[torch.Tensor] = list(self._network.parameters())
        self._descent = _Descent(self._weights, learning_rule(task.plan.model))
        self._scaler = torch.amp.GradScaler(place.backend, enabled=task.plan.precision == "fp16")
        self._batches = task.batches(place.torch_name)
        self._losses = torch.zeros(task.plan.steps, device=place.torch_name)
        self._done = 0

    def step(self) -> None:
        """Forward, backward and one step of gradient descent."""
        samples, labels = self._batches[(self._first + self._done) % len(self._batches)]
        dtype = _AUTOCAST[self._plan.precision]
        with torch.autocast(self._place.backend, dtype, enabled=dtype is not torch.float32):
            loss = nn.functional.cross_entropy(self._network(samples), labels)
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]  # torch leaves it without types
        self._scaler.step(self._descent)  # type: ignore[arg-type]  # it has what the scaler asks of an optimizer
        self._scaler.update()
        for weight in self._weights:  # also after a step that the scaler skipped because its scale was too high
            weight.grad = None
        self._losses[self._done] = loss.detach()
        self._done += 1

    def run(self) -> Trained:
        """Runs the warm-up and then the measured steps, without waiting for the device between them."""
        for _ in range(self._plan.warmup):
            self.step()
        settle(self._place)
        start = time.perf_counter()
        seconds = time_each(self._place, self.step, self._plan.iterations)
        settle(self._place)
        measured = Stretch(start, time.perf_counter())
        return Trained(
            losses=self._losses.tolist(),
            seconds=seconds,
            measured=measured,
            checksum=checksum([self._losses, *self._weights]),
            weights=checksum(self._weights),
        )


class _Descent:
    """Gradient descent with momentum, as in torch.optim.SGD, whose import would take longer than a quick run.

    All gradients together are one vector; it is shortened where it is longer than the rule allows.
    """

    def __init__(self, weights: list[torch.Tensor], rule: LearningRule) -> None:
        self.param_groups: list[dict[str, Any]] = [{"params": weights}]  # a GradScaler reads the gradients here
        self._weights = weights
        self._rule = rule
        self._velocities = [torch.zeros_like(weight) for weight in weights]

    @torch.no_grad()
    def step(self) -> None:
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]  # and it never is
        if self._rule.longest_gradient < math.inf:
            length = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
            torch._foreach_mul_(gradients, (self._rule.longest_gradient / length).clamp(max=1.0))
        torch._foreach_mul_(self._velocities, self._rule.momentum)
        torch._foreach_add_(self._velocities, gradients)
        torch._foreach_add_(self._weights, self._velocities, alpha=-self._rule.rate)


def _what_fits(place: Place, task: Task) -> str:
    """Tries smaller and smaller batches, each half of the one before."""
    size = task.plan.batch_size
    smaller = size // 2
    while smaller >= 2:
        if _fits(place, task, smaller):
            return f"batches of {size} do not fit into memory here, batches of {smaller} do: set batch_size={smaller}"
        smaller //= 2
    return f"{task.plan.model} does not fit into memory here, not even with the smallest batch"


def _fits(place: Place, task: Task, batch_size: int) -> bool:
    kept = BATCHES * batch_size
    smaller = task._replace(
        plan=task.plan._replace(batch_size=batch_size, warmup=0, iterations=1),
        samples=task.samples[:kept],
        labels=task.labels[:kept],
    )
    if place.backend == "cuda":
        torch.cuda.empty_cache()
    try:
        TrainingLoop(place, smaller).step()
    except (RuntimeError, MemoryError) as error:
        if not ran_out_of_memory(error):
            raise
        return False
    return True
