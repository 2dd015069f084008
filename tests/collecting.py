"""One worker collects first, and compiles what all workers import.

In a fresh clone nothing is compiled: pytest rewrites the assertions of each file of tests, and Python compiles muster
and its dependencies. That is more than half of what collecting costs, and workers that begin together would each do all
of it: with five workers, 25 s of processor time in every run of CI.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def one_first(config: pytest.Config) -> Iterator[None]:
    """Lets the first worker of a run go on alone until its context ends, and then all others side by side."""
    run = getattr(config, "workerinput", {}).get("testrunuid")
    if run is None or config.cache is None:
        yield
        return
    with (config.cache.mkdir("muster") / "collected_by_first").open("a+") as last_run:
        fcntl.flock(last_run, fcntl.LOCK_EX)
        last_run.seek(0)
        is_first = last_run.read() != run
        if not is_first:
            fcntl.flock(last_run, fcntl.LOCK_UN)
        yield
        if is_first:
            last_run.truncate(0)
            last_run.write(run)
