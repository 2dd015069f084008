"""These tests need an NVIDIA GPU and are left out unless MUSTER_TEST_GPU=1 asks for them.

Asked for, they fail where there is no GPU. A skip would let a machine whose driver has gone pass for tested. CUDA is
used in processes of their own only, so that the tests do not hold memory of the device that they test.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent

DEADLINE_S = 170.0

collect_ignore_glob = [] if os.environ.get("MUSTER_TEST_GPU") == "1" else ["test_*.py"]


@pytest.fixture
def python(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python with these arguments, in the environment of the tests and `environment`."""

    def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            env=os.environ | {"MUSTER_DATA_DIR": str(tmp_path / "data")} | environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    return run


@pytest.fixture
def check_run(python) -> Callable[..., Any]:
    """Runs one check as a person would, `check_run("gemm", "--quick")`, and gives the run that it prints."""

    def run(*arguments: str, **environment: str) -> Any:
        done = python("-m", "muster", "check", "run", *arguments, "--json", **environment)
        assert done.stdout, done.stderr
        (item,) = json.loads(done.stdout)["items"]
        return item

    return run


@pytest.fixture
def on_the_gpu(python) -> Callable[..., Any]:
    """What a function of `gpu_child.py` says, by its name and arguments."""

    def run(*arguments: str) -> Any:
        done = python(HERE / "gpu_child.py", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
