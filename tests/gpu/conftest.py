"""These tests need an NVIDIA GPU and are left out unless MUSTER_TEST_GPU=1 asks for them.

Asked for, they fail where there is no GPU. A skip would let a machine whose driver has gone pass for tested.
"""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

collect_ignore_glob = [] if os.environ.get("MUSTER_TEST_GPU") == "1" else ["test_*.py"]


@pytest.fixture
def check_run(muster, tmp_path) -> Callable[..., Any]:
    """Runs one check as a person would, `check_run("gemm", "--quick")`, and gives the run that it prints."""

    def run(*arguments: str) -> Any:
        done = muster("check", "run", *arguments, "--json", env={"MUSTER_DATA_DIR": str(tmp_path)})
        assert done.stdout, done.stderr
        (item,) = json.loads(done.stdout)["items"]
        return item

    return run
