"""Reads data sets as they were published: IDX files, both formats of CIFAR's archives, and directories of JPEGs.

Import this only in child processes, because it imports numpy. It trusts no file: it checks sizes before it reads data
of that size, and pickles may use only the names that arrays of numbers need.
"""

import gzip
import io
import pickle
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.extras import missing_package
from muster_plugins.checks.training.problems import TrainingProblem
from muster_plugins.checks.training.task import DataSet

Bytes = NDArray[np.uint8]


class Images(NamedTuple):
    """Some samples of a data set of `classes` classes: `pixels` by sample, channel, row and column; one label each."""

    pixels: Bytes
    labels: NDArray[np.int64]
    classes: int


def read_images(data: DataSet, root: Path, count: int, seed: int) -> Images:
    """`count` samples of the data set below `root`, chosen by `seed`; they repeat if the data set has fewer.

    Raises TrainingProblem if the data set is missing, incomplete or not of the format that its name says.
    """
    return _READERS[data](root, count, np.random.default_rng(seed))


def _fashion_mnist(root: Path, count: int, rng: np.random.Generator) -> Images:
    names = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
    directory = _directory(root, ("fashion_mnist", "FashionMNIST/raw"), holding=names[0])
    pixels, labels = (_read_idx(_plain_or_zipped(directory, name)) for name in names)
    if pixels.ndim != 3 or labels.ndim != 1:
        raise TrainingProblem("data_damaged", f"{directory}: images need three dimensions and labels one")
    return _chosen(_checked(Images(pixels[:, None], labels.astype(np.int64), 10), directory), count, rng)


def _plain_or_zipped(directory: Path, name: str) -> Path:
    return next((path for path in (directory / name, directory / f"{name}.gz") if path.exists()), directory / name)


_MOST_BYTES = 1 << 30
"""Maximum size of one unpacked file: several times the largest one here. Damaged bytes cannot request all memory."""


def _read_idx(path: Path) -> Bytes:
    """An array of bytes in the format of the MNIST files: 0, 0, 8, dimensions, their big-endian sizes, data."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return _idx_array(file, path)
    except FileNotFoundError:
        raise TrainingProblem("data_missing", f"{path} does not exist, nor does {path.name}.gz") from None
    except (OSError, EOFError, zlib.error) as error:
        raise TrainingProblem("data_damaged", f"{path} cannot be read: {error}") from None


def _idx_array(file: BinaryIO | gzip.GzipFile, path: Path) -> Bytes:
    magic = file.read(4)
    if len(magic) < 4 or magic[:3] != b"\x00\x00\x08":
        raise TrainingProblem(
            "data_damaged", f"{path} is not an IDX file of bytes: it starts with {magic.hex() or 'nothing'}"
        )
    sizes = [int.from_bytes(file.read(4), "big") for _ in range(magic[3])]
    length = int(np.prod(sizes, dtype=object))
    if not 0 < length <= _MOST_BYTES:
        raise TrainingProblem("data_damaged", f"{path} declares {' x '.join(map(str, sizes))} bytes")
    data = file.read(length)
    if len(data) < length:
        raise TrainingProblem("data_damaged", f"{path} is truncated: it has {len(data)} of {length} bytes")
    return np.frombuffer(data, np.uint8).reshape(sizes)


class _Cifar(NamedTuple):
    """The format of a CIFAR data set: the name of its labels in pickles, and the label bytes before an image."""

    pickled: tuple[str, ...]
    binary: tuple[str, ...]
    files: Sequence[str]
    label: bytes
    label_bytes: int
    classes: int


_CIFAR10 = _Cifar(
    pickled=("cifar-10-batches-py",),
    binary=("cifar-10-batches-bin",),
    files=[f"data_batch_{number}" for number in range(1, 6)],
    label=b"labels",
    label_bytes=1,
    classes=10,
)
_CIFAR100 = _Cifar(
    pickled=("cifar-100-python",),
    binary=("cifar-100-binary",),
    files=["train"],
    label=b"fine_labels",
    label_bytes=2,
    classes=100,
)
_CIFAR_SHAPE = (3, 32, 32)
_CIFAR_BYTES = 3 * 32 * 32


def _cifar(published: _Cifar) -> Callable[[Path, int, np.random.Generator], Images]:
    def read(root: Path, count: int, rng: np.random.Generator) -> Images:
        directory = _directory(root, (*published.pickled, *published.binary), holding=published.files[0])
        read_file = _read_cifar_binary if directory.name in published.binary else _read_cifar_pickle
        suffix = ".bin" if directory.name in published.binary else ""
        parts = [read_file(directory / f"{name}{suffix}", published) for name in published.files]
        pixels, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        found = Images(pixels.reshape(-1, *_CIFAR_SHAPE), labels.astype(np.int64), published.classes)
        return _chosen(_checked(found, directory), count, rng)

    return read


def _read_cifar_binary(path: Path, published: _Cifar) -> tuple[Bytes, Bytes]:
    """Rows of one or two label bytes, of which the last is the finer label, and 3072 bytes of an image."""
    content = _content(path)
    row = published.label_bytes + _CIFAR_BYTES
    if not content or len(content) % row:
        raise TrainingProblem("data_damaged", f"{path} is truncated: {len(content)} bytes are not a multiple of {row}")
    rows = np.frombuffer(content, np.uint8).reshape(-1, row)
    return rows[:, published.label_bytes :], rows[:, published.label_bytes - 1]


def _read_cifar_pickle(path: Path, published: _Cifar) -> tuple[Bytes, NDArray[np.int64]]:
    """A pickled dictionary of Python 2: an array of rows of 3072 bytes and a list of labels."""
    content = io.BytesIO(_content(path))
    try:
        table = _NumbersOnly(content, encoding="bytes").load()
        pixels, labels = table[b"data"], np.asarray(table[published.label], np.int64)
        fits = pixels.dtype == np.uint8 and pixels.shape == (len(labels), _CIFAR_BYTES)
    except Exception as error:  # a damaged pickle can raise any exception
        raise TrainingProblem(
            "data_damaged", f"{path} is not a pickle of CIFAR: {type(error).__name__}: {error}"
        ) from None
    if not fits:
        raise TrainingProblem("data_damaged", f"{path} does not hold {_CIFAR_BYTES} bytes for each of its labels")
    return pixels, labels


class _NumbersOnly(pickle.Unpickler):
    """Allows only the names that arrays need, so that a pickle can create arrays and call nothing else."""

    _ALLOWED = frozenset(
        {
            ("numpy", "dtype"),
            ("numpy", "ndarray"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("_codecs", "encode"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise pickle.UnpicklingError(f"it uses the name {module}.{name}, which no array needs")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise TrainingProblem("data_missing", f"{path} does not exist") from None
    except OSError as error:
        raise TrainingProblem("data_damaged", f"{path} cannot be read: {error.strerror}") from None
    if len(content) > _MOST_BYTES:
        raise TrainingProblem("data_damaged", f"{path} is larger than any file of its data set")
    return content


_IMAGE_PIXELS = 224


def _imagenet(root: Path, count: int, rng: np.random.Generator) -> Images:
    """Samples spread over the classes, so that it lists no more directories than there are samples."""
    directory = _directory(root, ("imagenet/train", "imagenet"), holding="class directories with JPEG files")
    classes = [entry for entry in _listed(directory) if entry.is_dir()]
    if not classes:
        raise TrainingProblem("data_missing", f"{directory} contains no class directories with JPEG files")
    labels = np.resize(rng.permutation(len(classes)), count).astype(np.int64)
    files: dict[int, list[Path]] = {}
    pixels = np.empty((count, 3, _IMAGE_PIXELS, _IMAGE_PIXELS), np.uint8)
    for number, label in enumerate(labels.tolist()):
        if label not in files:
            files[label] = _jpegs(classes[label])
        pixels[number] = _decoded(files[label][int(rng.integers(len(files[label])))])
    return Images(pixels, labels, len(classes))


def _jpegs(directory: Path) -> list[Path]:
    found = [entry for entry in _listed(directory) if entry.suffix.lower() in (".jpeg", ".jpg")]
    if not found:
        raise TrainingProblem("data_missing", f"{directory} contains no JPEG files")
    return found


def _listed(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError as error:
        raise TrainingProblem("data_missing", f"{directory} cannot be listed: {error.strerror}") from None


def _decoded(path: Path) -> Bytes:
    """The central square of an image, scaled to the input size of the networks."""
    try:
        from PIL import Image, ImageOps  # noqa: PLC0415  only ImageNet needs it, and not everybody has it
    except ImportError as error:
        raise TrainingProblem("decoder_missing", f"imagenet: {missing_package(error) or error}") from None
    try:
        with Image.open(path, formats=["JPEG"]) as image:
            fitted = ImageOps.fit(image.convert("RGB"), (_IMAGE_PIXELS, _IMAGE_PIXELS))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise TrainingProblem("data_damaged", f"{path} cannot be decoded: {error}") from None
    return np.asarray(fitted, np.uint8).transpose(2, 0, 1)


def _directory(root: Path, names: Sequence[str], holding: str) -> Path:
    """The first directory of `names` below `root`."""
    for name in names:
        if (root / name).is_dir():
            return root / name
    raise TrainingProblem("data_missing", f"{root} has no directory {' or '.join(names)} with {holding}")


def _checked(found: Images, directory: Path) -> Images:
    pixels, labels, classes = found
    if not 0 < len(pixels) == len(labels):
        raise TrainingProblem("data_damaged", f"{directory} contains {len(pixels)} images but {len(labels)} labels")
    if int(labels.min()) < 0 or int(labels.max()) >= classes:
        raise TrainingProblem("data_damaged", f"{directory} contains labels that are not between 0 and {classes - 1}")
    return found


def _chosen(found: Images, count: int, rng: np.random.Generator) -> Images:
    rows = np.resize(rng.permutation(len(found.labels)), count)
    return Images(found.pixels[rows], found.labels[rows], found.classes)


_READERS: dict[DataSet, Callable[[Path, int, np.random.Generator], Images]] = {
    "fashion_mnist": _fashion_mnist,
    "cifar10": _cifar(_CIFAR10),
    "cifar100": _cifar(_CIFAR100),
    "imagenet": _imagenet,
}
