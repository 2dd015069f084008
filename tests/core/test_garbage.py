"""When Python does not look for garbage, and that it does so again afterwards."""

import gc
import subprocess
import sys

import pytest

from muster.garbage import no_collection
from muster.version import __version__


def test_the_collector_works_again_after_an_import_that_fails():
    """Off in between."""
    with pytest.raises(ImportError), no_collection():
        assert not gc.isenabled()
        raise ImportError("no such module")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    """Whoever has switched it off wants it off."""
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


KNOT = """
import gc
from muster.cli import main

class Knot:
    def __init__(self):
        self.itself = self
    def __del__(self):
        print("looked for garbage")

gc.disable()
Knot()
main()
"""


@pytest.mark.usefixtures("live")
def test_a_command_ends_without_a_search():
    """Everything goes with the process."""
    done = subprocess.run([sys.executable, "-c", KNOT, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{__version__}\n"
