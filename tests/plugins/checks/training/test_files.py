"""Data sets in their published formats: small real files of each, and what is said of damaged ones."""

import gzip
import os
import pickle
import sys

import pytest

from muster_plugins.checks.training.problems import TrainingProblem

np = pytest.importorskip("numpy")

from PIL import Image  # noqa: E402 (see above)

from muster_plugins.checks.training.files import read_images  # noqa: E402 (see above)

IMAGES = 13
DICE = np.random.default_rng(7)


def idx(array):
    header = bytes([0, 0, 8, array.ndim])
    return header + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes()


def cifar_pickle(label: bytes, classes: int) -> bytes:
    pixels = DICE.integers(256, size=(IMAGES, 3072), dtype=np.uint8)
    table = {b"data": pixels, label: [number % classes for number in range(IMAGES)]}
    written = pickle.dumps(table, protocol=2)
    return written.replace(b"numpy._core", b"numpy.core")  # as Python 2 wrote it


def cifar_binary(label_bytes: int, classes: int):
    rows = DICE.integers(256, size=(IMAGES, label_bytes + 3072), dtype=np.uint8)
    rows[:, label_bytes - 1] = np.arange(IMAGES) % classes
    return rows.tobytes()


def write(path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write_fashion_mnist(root, zipped=False):
    pixels = DICE.integers(256, size=(IMAGES, 28, 28), dtype=np.uint8)
    labels = (np.arange(IMAGES) % 10).astype(np.uint8)
    for name, array in (("train-images-idx3-ubyte", pixels), ("train-labels-idx1-ubyte", labels)):
        suffix, content = (".gz", gzip.compress(idx(array))) if zipped else ("", idx(array))
        write(root / "fashion_mnist" / (name + suffix), content)


def write_imagenet(root):
    for wordnet_id in ("n01440764", "n01443537"):
        directory = root / "imagenet" / "train" / wordnet_id
        directory.mkdir(parents=True)
        for number in range(3):
            pixels = DICE.integers(256, size=(250, 300, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(directory / f"{wordnet_id}_{number}.JPEG", format="JPEG")


def write_five(directory, suffix, content):
    for number in range(1, 6):
        write(directory / f"data_batch_{number}{suffix}", content)


WRITERS = {
    "fashion_mnist": write_fashion_mnist,
    "fashion_mnist zipped": lambda root: write_fashion_mnist(root, zipped=True),
    "cifar10": lambda root: write_five(root / "cifar-10-batches-py", "", cifar_pickle(b"labels", 10)),
    "cifar10 binary": lambda root: write_five(root / "cifar-10-batches-bin", ".bin", cifar_binary(1, 10)),
    "cifar100": lambda root: write(root / "cifar-100-python" / "train", cifar_pickle(b"fine_labels", 100)),
    "cifar100 binary": lambda root: write(root / "cifar-100-binary" / "train.bin", cifar_binary(2, 100)),
    "imagenet": write_imagenet,
}


@pytest.mark.parametrize(
    ("written", "shape", "classes"),
    [
        ("fashion_mnist", (1, 28, 28), 10),
        ("fashion_mnist zipped", (1, 28, 28), 10),
        ("cifar10", (3, 32, 32), 10),
        ("cifar10 binary", (3, 32, 32), 10),
        ("cifar100", (3, 32, 32), 100),
        ("cifar100 binary", (3, 32, 32), 100),
        ("imagenet", (3, 224, 224), 2),
    ],
)
def test_samples_are_read_and_repeated_where_there_are_few(tmp_path, written, shape, classes):
    """As many as asked for, the same for the same seed, with labels of the data set's classes."""
    WRITERS[written](tmp_path)
    data = written.split()[0]
    images = read_images(data, tmp_path, 70, seed=1)
    assert images.pixels.shape == (70, *shape)
    assert images.classes == classes
    assert 0 <= images.labels.min() <= images.labels.max() < classes
    again = read_images(data, tmp_path, 70, seed=1)
    assert (again.pixels == images.pixels).all()
    assert (again.labels == images.labels).all()


def test_pixels_and_labels_stay_together(tmp_path):
    """Both formats give every image its own label: here the first pixel says which."""
    rows = np.zeros((IMAGES, 3073), np.uint8)
    rows[:, 0] = rows[:, 1] = np.arange(IMAGES) % 10
    for number in range(1, 6):
        write(tmp_path / "cifar-10-batches-bin" / f"data_batch_{number}.bin", rows.tobytes())
    images = read_images("cifar10", tmp_path, 20, seed=3)
    assert (images.pixels[:, 0, 0, 0] == images.labels).all()


def halve(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


class Evil:
    def __reduce__(self):
        return os.system, ("true",)


FASHION = "fashion_mnist/train-images-idx3-ubyte"
BATCH = "cifar-10-batches-py/data_batch_3"
ROW = "cifar-10-batches-bin/data_batch_2.bin"
JPEGS = "imagenet/train/n01440764"


@pytest.mark.parametrize(
    ("written", "damage", "code", "words"),
    [
        ("fashion_mnist", lambda root: halve(root / FASHION), "data_damaged", "truncated"),
        ("fashion_mnist", lambda root: write(root / FASHION, b""), "data_damaged", "not an IDX file"),
        ("fashion_mnist", lambda root: write(root / FASHION, b"<html>"), "data_damaged", "not an IDX file"),
        (
            "fashion_mnist",
            lambda root: write(root / FASHION, b"\0\0\x08\x03" + b"\xff" * 12),
            "data_damaged",
            "declares",
        ),
        ("fashion_mnist", lambda root: (root / FASHION).unlink(), "data_missing", "does not exist"),
        ("fashion_mnist zipped", lambda root: halve(root / f"{FASHION}.gz"), "data_damaged", "cannot be read"),
        ("cifar10", lambda root: halve(root / BATCH), "data_damaged", "not a pickle of CIFAR"),
        ("cifar10", lambda root: (root / BATCH).unlink(), "data_missing", "data_batch_3"),
        ("cifar10", lambda root: write(root / BATCH, pickle.dumps(Evil())), "data_damaged", "which no array needs"),
        ("cifar10", lambda root: write(root / BATCH, pickle.dumps([1])), "data_damaged", "not a pickle of CIFAR"),
        ("cifar10", lambda root: write(root / BATCH, cifar_pickle(b"labels", 11)), "data_damaged", "between 0 and 9"),
        ("cifar10 binary", lambda root: halve(root / ROW), "data_damaged", "truncated"),
        ("imagenet", lambda root: [halve(each) for each in (root / JPEGS).iterdir()], "data_damaged", "decoded"),
        ("imagenet", lambda root: [each.unlink() for each in (root / JPEGS).iterdir()], "data_missing", "no JPEG"),
    ],
)
def test_damaged_data_is_named(tmp_path, written, damage, code, words):
    """The file and what is wrong with it, and nothing in it is carried out."""
    WRITERS[written](tmp_path)
    damage(tmp_path)
    with pytest.raises(TrainingProblem, match=words) as problem:
        read_images(written.split()[0], tmp_path, 64, seed=1)
    assert problem.value.code == code
    assert str(tmp_path) in str(problem.value)


@pytest.mark.parametrize("data", ["fashion_mnist", "cifar10", "cifar100", "imagenet"])
def test_a_directory_that_holds_something_else_is_refused(tmp_path, data):
    """The names that were looked for are told."""
    (tmp_path / "holiday-pictures").mkdir()
    with pytest.raises(TrainingProblem, match="has no directory") as problem:
        read_images(data, tmp_path, 8, seed=1)
    assert problem.value.code == "data_missing"


def test_imagenet_without_a_decoder_says_what_to_install(tmp_path, monkeypatch):
    """Pillow is not among what muster needs otherwise."""
    write_imagenet(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(TrainingProblem, match=r"gpu-muster\[images\]") as problem:
        read_images("imagenet", tmp_path, 8, seed=1)
    assert problem.value.code == "decoder_missing"
