"""Workers that collect: the first goes on alone, and the others side by side."""

from threading import Barrier, Event, Thread
from types import SimpleNamespace

import pytest
from tests.collecting import one_first

SOON_S = 60


@pytest.fixture
def worker(tmp_path):
    """What a worker of a run knows: `worker(run)`."""

    def make(run):
        return SimpleNamespace(workerinput={"testrunuid": run}, cache=SimpleNamespace(mkdir=lambda _: tmp_path))

    return make


@pytest.mark.parametrize("before", [(), ("yesterday",)])
def test_the_others_wait_for_the_first(worker, before):
    """When it is done they collect at the same time; which worker was first in an earlier run does not matter."""
    for run in before:
        with one_first(worker(run)):
            pass
    together = Barrier(2)
    collecting = [Event(), Event()]

    def collect(event):
        with one_first(worker("today")):
            event.set()
            together.wait(SOON_S)

    others = [Thread(target=collect, args=(event,)) for event in collecting]
    with one_first(worker("today")):
        for other in others:
            other.start()
        assert not any(event.wait(0.1) for event in collecting)
    for other in others:
        other.join(SOON_S)
    assert not together.broken
    assert all(event.is_set() for event in collecting)


def test_another_is_first_if_the_first_fails(worker):
    """It may have compiled nothing, so the others wait for the next one."""
    with pytest.raises(SyntaxError), one_first(worker("today")):
        raise SyntaxError
    with one_first(worker("today")):
        waiting = Event()

        def collect():
            with one_first(worker("today")):
                waiting.set()

        other = Thread(target=collect)
        other.start()
        assert not waiting.wait(0.1)
    other.join(SOON_S)
    assert waiting.is_set()
