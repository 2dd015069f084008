"""What the interpreter that forks for each command may know of the tests."""

from tests.muster_process import prepared, run_muster


def test_the_prepared_interpreter_knows_no_test():
    """It is for all tests of a worker: one that kills what has its variables would end the commands of all others."""
    assert run_muster("--version").returncode == 0
    environment = prepared().environment
    assert b"PATH=" in environment
    assert b"PYTEST_CURRENT_TEST=" not in environment
