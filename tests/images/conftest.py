"""Both images, built from this checkout with buildah on a base made with debootstrap: `make images`.

Nothing is fetched during a build: it has no network, only a directory of wheels. The base and the wheels are kept in
.cache/images.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from tests.debian import ROOT, debootstrap, path, pinned_wheels, release, run

CACHE = ROOT / ".cache" / "images"
REVISION = "0123456789abcdef0123456789abcdef01234567"
EPOCH = "1700000000"
EXTRAS = {"coordinator": "artifacts,coordinator,kubernetes,postgres", "agent": "agent,artifacts,kubernetes"}
"""What each image installs beside the core. torch is for the base to bring."""


@pytest.fixture(scope="session", autouse=True)
def programs(live: None) -> None:
    """These tests fail without what they need: they are run on purpose."""
    assert os.getuid() == 0, "run `make images` as root: it makes file systems and starts containers without an engine"
    missing = [name for name in ("buildah", "crun", "debootstrap") if shutil.which(name, path=path()) is None]
    assert not missing, f"install {' '.join(missing)}: .ci/system-packages images"


@pytest.fixture(scope="session")
def base() -> Path:
    """An archive with Debian's smallest system, Python and pip: the release of this machine, from its mirror."""
    archive = CACHE / f"base-{release()}.tar"
    if not archive.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            system = Path(scratch) / "system"
            debootstrap(system, "python3", "python3-pip", "ca-certificates")
            run("tar", "--create", "--file", Path(scratch) / "base.tar", "--directory", system, ".")
            (Path(scratch) / "base.tar").rename(archive)
    return archive


@pytest.fixture(scope="session")
def wheels(base: Path) -> Path:
    """A directory with the pinned packages for the base's Python."""
    python = re.search(r"\./usr/bin/python(3\.\d+)$", run("tar", "--list", "--file", base), re.MULTILINE)
    assert python, f"{base} has no Python"
    extras = ",".join(sorted({*",".join(EXTRAS.values()).split(",")}))
    return pinned_wheels(CACHE, python[1], extras, "hatchling")


@dataclass(frozen=True)
class Image:
    """An image in the store of these tests, and where its files lie."""

    name: str
    config: dict[str, Any]
    identity: str
    files: Path

    @cached_property
    def paths(self) -> set[str]:
        """Every file and directory, from the root of the image."""
        return {str(each.relative_to(self.files)) for each in self.files.rglob("*")}

    @cached_property
    def size_mb(self) -> float:
        return sum(each.lstat().st_size for each in self.files.rglob("*") if not each.is_symlink()) / 1e6


class Store:
    """Images and their files below a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def buildah(self, *command: str | Path, before: tuple[str, ...] = ()) -> str:
        place = ("--root", self._directory / "root", "--runroot", self._directory / "run", "--storage-driver", "vfs")
        return run(*before, "buildah", *place, *command).strip()

    def load_base(self, archive: Path) -> Image:
        container = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", container, archive, "/")
        self.buildah("commit", "--quiet", container, "base")
        self.buildah("rm", container)
        return self.image("base")

    def build(self, target: str, tag: str, wheels: Path, *, offline: bool = True) -> Image:
        """Builds one image, by default without a network."""
        self.buildah(
            *("build", "--isolation=chroot", "--pull-never", "--no-cache", f"--timestamp={EPOCH}"),
            *(f"--build-context=wheels={wheels}", "--build-arg=PIP_NO_INDEX=1", "--build-arg=BASE=localhost/base"),
            *(f"--build-arg=SOURCE_DATE_EPOCH={EPOCH}", f"--build-arg=REVISION={REVISION}"),
            *([f"--build-arg=EXTRAS={EXTRAS['agent']}"] if target != "coordinator" else []),
            *(f"--file={ROOT}/docker/Dockerfile", f"--target={target}", f"--tag={tag}"),
            *(f"--logfile={self.log(tag)}", ROOT),
            before=("unshare", "--net") if offline else (),
        )
        return self.image(tag)

    def log(self, tag: str) -> Path:
        """What the build of an image has printed."""
        return self._directory / f"{tag}.log"

    def image(self, name: str) -> Image:
        about = json.loads(self.buildah("inspect", "--type=image", name))
        container = self.buildah("from", "--pull-never", f"localhost/{name}")
        files = Path(self.buildah("mount", container))
        return Image(name, about["OCIv1"]["config"], about["FromImageID"], files)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    directory = tmp_path_factory.mktemp("images")
    yield Store(directory)
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def bare(store: Store, base: Path) -> Image:
    """The base that the others stand on."""
    return store.load_base(base)


@pytest.fixture(scope="session")
def coordinator(store: Store, bare: Image, wheels: Path) -> Image:
    return store.build("coordinator", "coordinator", wheels)


@pytest.fixture(scope="session")
def agent(store: Store, bare: Image, wheels: Path) -> Image:
    return store.build("agent", "agent", wheels)


@pytest.fixture(scope="session", params=sorted(EXTRAS))
def image(request: pytest.FixtureRequest) -> Image:
    """Each of the two images in turn."""
    built: Image = request.getfixturevalue(request.param)
    return built
