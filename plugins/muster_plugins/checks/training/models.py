"""The networks that are trained, in plain torch. Import this only in child processes, because it imports torch.

Each network classifies its samples. On the CPU they are smaller, so that a training takes only seconds.
"""

from typing import NamedTuple

import torch
from torch import nn

from muster_plugins.checks.training.task import Model

SampleShape = tuple[int, ...]


class _Sizes(NamedTuple):
    """Sizes of the networks on one backend. Synthetic samples of the resnets are squares of `image` pixels."""

    hidden: int
    image: int
    sequence: int
    width: int
    heads: int
    layers: int
    feedforward: int


_SIZES = {
    "cuda": _Sizes(hidden=4096, image=224, sequence=512, width=1024, heads=16, layers=12, feedforward=4096),
    "cpu": _Sizes(hidden=128, image=32, sequence=16, width=64, heads=4, layers=2, feedforward=128),
}

_FEATURES = 64
"""Number of features of one synthetic sample of the mlp."""


def sample_shape(model: Model, backend: str) -> SampleShape:
    """The shape of one synthetic sample: features, or channels x height x width, or sequence x features."""
    sizes = _SIZES[backend]
    shapes: dict[Model, SampleShape] = {
        "mlp": (_FEATURES,),
        "resnet18": (3, sizes.image, sizes.image),
        "resnet50": (3, sizes.image, sizes.image),
        "transformer": (sizes.sequence, sizes.width),
    }
    return shapes[model]


def build(model: Model, shape: SampleShape, classes: int, backend: str) -> nn.Module:
    """The network for samples of `shape`; torch's generator gives the initial weights."""
    sizes = _SIZES[backend]
    match model:
        case "mlp":
            return _mlp(shape, sizes.hidden, classes)
        case "resnet18":
            return _resnet(_Basic, (2, 2, 2, 2), shape[0], classes)
        case "resnet50":
            return _resnet(_Bottleneck, (3, 4, 6, 3), shape[0], classes)
        case "transformer":
            return _Transformer(sizes, classes)


def _mlp(shape: SampleShape, hidden: int, classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(torch.Size(shape).numel(), hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, classes),
    )


class _Residual(nn.Module):
    """Adds the output of its branch to the input, which is projected if the shapes differ."""

    expansion: int

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.branch = self._branch(inputs, width, stride)
        same_shape = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same_shape else nn.Sequential(*_convolved(inputs, outputs, 1, stride))
        self.activation = nn.ReLU(inplace=True)

    @staticmethod
    def _branch(inputs: int, width: int, stride: int) -> nn.Sequential:
        raise NotImplementedError

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        summed: torch.Tensor = self.activation(self.branch(samples) + self.shortcut(samples))
        return summed


class _Basic(_Residual):
    """The block of resnet18, He et al. 2015, figure 5 left."""

    expansion = 1

    @staticmethod
    def _branch(inputs: int, width: int, stride: int) -> nn.Sequential:
        return nn.Sequential(
            *_convolved(inputs, width, 3, stride), nn.ReLU(inplace=True), *_convolved(width, width, 3, 1)
        )


class _Bottleneck(_Residual):
    """The block of resnet50, He et al. 2015, figure 5 right, with the stride in the 3x3 layer as in torchvision."""

    expansion = 4

    @staticmethod
    def _branch(inputs: int, width: int, stride: int) -> nn.Sequential:
        return nn.Sequential(
            *_convolved(inputs, width, 1, 1),
            nn.ReLU(inplace=True),
            *_convolved(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_convolved(width, width * _Bottleneck.expansion, 1, 1),
        )


def _convolved(inputs: int, outputs: int, kernel: int, stride: int) -> tuple[nn.Module, nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return convolution, nn.BatchNorm2d(outputs)


class _Mean(nn.Module):
    """The mean over all pixels; AdaptiveAvgPool2d has no deterministic gradient on CUDA."""

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        return samples.mean(dim=(2, 3))


def _resnet(block: type[_Residual], depths: tuple[int, ...], channels: int, classes: int) -> nn.Module:
    """Stem, four stages of residual blocks that halve the image and double the width, mean and classifier."""
    inputs = 64
    layers: list[nn.Module] = [*_convolved(channels, inputs, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for number in range(depth):
            layers.append(block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width * block.expansion
    return nn.Sequential(*layers, _Mean(), nn.Linear(inputs, classes))


class _Transformer(nn.Module):
    """An encoder over sequences of feature vectors; it classifies their mean, and layers normalise their input."""

    def __init__(self, sizes: _Sizes, classes: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            sizes.width, sizes.heads, sizes.feedforward, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, sizes.layers, nn.LayerNorm(sizes.width), enable_nested_tensor=False)
        self.classifier = nn.Linear(sizes.width, classes)

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.classifier(self.encoder(samples).mean(dim=1))
        return scores
