"""The task that every device gets: initial weights and a few batches. Import this only in child processes.

The batches repeat, so that the network memorises them and the loss falls within a few steps on any data set. How well
the network generalises does not matter for testing a device. The batches are on the device before the training starts,
because another check measures that transfer.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from muster_plugins.checks.training.files import read_images
from muster_plugins.checks.training.models import SampleShape, build, sample_shape
from muster_plugins.checks.training.problems import TrainingProblem
from muster_plugins.checks.training.task import SETTINGS_NAME, TrainingPlan, learning_rule
from muster_plugins.shared.torch_failures import ran_out_of_memory

BATCHES = 8

_CLASSES = 10
"""Number of synthetic samples in each class."""

_NOISE = 0.5
"""Standard deviation of synthetic samples around the centre of their class; that of the centres is 1."""


class Task(NamedTuple):
    """The initial network and batches of every device, on the host.

    `checksum` tells two tasks apart, and also two rules of learning: an older muster may have another.
    """

    plan: TrainingPlan
    network: nn.Module
    samples: torch.Tensor
    labels: torch.Tensor
    checksum: str

    def batches(self, device: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Samples and labels, moved to `device`."""
        samples, labels = self.samples.to(device), self.labels.to(device)
        size = self.plan.batch_size
        return [(samples[start : start + size], labels[start : start + size]) for start in range(0, len(labels), size)]


def prepared(plan: TrainingPlan, data_dir: Path | None) -> Task:
    """The task of a plan, the same on every node with the same data. Raises TrainingProblem if that fails."""
    try:
        return _prepared(plan, data_dir)
    except (RuntimeError, MemoryError) as error:
        if not ran_out_of_memory(error):
            raise
    raise TrainingProblem(
        "does_not_fit", f"{BATCHES} batches of {plan.batch_size} samples do not fit into the host's memory"
    )


def _prepared(plan: TrainingPlan, data_dir: Path | None) -> Task:
    torch.manual_seed(plan.seed)
    shape = sample_shape(plan.model, plan.backend)
    if plan.data == "synthetic":
        samples, labels, classes = _synthetic(shape, plan)
    else:
        samples, labels, classes = _from_files(plan, data_dir)
    network = build(plan.model, tuple(samples.shape[1:]), classes, plan.backend)
    rule = torch.tensor(learning_rule(plan.model))
    return Task(plan, network, samples, labels, checksum([samples, labels, rule, *network.parameters()]))


def checksum(tensors: Iterable[torch.Tensor]) -> str:
    """Twelve hexadecimal digits that change with any bit of the tensors."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()[:12]


def _synthetic(shape: SampleShape, plan: TrainingPlan) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Samples around one centre per class, in the shape that the network reads."""
    count = BATCHES * plan.batch_size
    labels = torch.randint(_CLASSES, (count,))
    samples = torch.randn(count, *shape).mul_(_NOISE).add_(torch.randn(_CLASSES, *shape)[labels])
    return samples, labels, _CLASSES


def _from_files(plan: TrainingPlan, data_dir: Path | None) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Images with mean 0 and deviation 1, in three channels; gray images have equal red, green and blue values."""
    if data_dir is None:
        raise TrainingProblem("data_unset", f"{plan.data} is read from files: set plugins.{SETTINGS_NAME}.data_dir")
    images = read_images(plan.data, data_dir, BATCHES * plan.batch_size, plan.seed)
    pixels = torch.from_numpy(images.pixels).float()
    deviation, mean = torch.std_mean(pixels)
    samples = pixels.sub_(mean).div_(deviation.clamp(min=1.0)).expand(-1, 3, -1, -1)
    return samples, torch.from_numpy(images.labels), images.classes
