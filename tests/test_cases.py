"""Tests with many cases say which of them fails."""

import inspect

import pytest
from tests.cases import cases


def test_a_case_that_fails_is_named():
    """With its values, beside the error."""

    @cases(("one", "other"), [(1, 1), (2, 3), (4, 4)])
    def equal(one: int, other: int) -> None:
        assert one == other

    with pytest.raises(AssertionError) as failure:
        equal()
    assert failure.value.__notes__ == ["in the case one=2, other=3"]


async def test_a_case_that_is_awaited_is_named():
    """As any other."""

    @cases("number", [1, 2])
    async def is_one(number: int) -> None:
        assert number == 1

    with pytest.raises(AssertionError) as failure:
        await is_one()
    assert failure.value.__notes__ == ["in the case number=2"]


def test_rows_may_have_names():
    """Then a case that fails is called so."""

    @cases("number", [1, 2], ids=["good", "bad"])
    def is_one(number: int) -> None:
        assert number == 1

    with pytest.raises(AssertionError) as failure:
        is_one()
    assert failure.value.__notes__ == ["in the case bad"]


def test_every_case_that_fails_is_named():
    """The cases after the first one that fails run too; so do those of a second table, for each of the first."""

    @cases("number", [1, pytest.param(2, id="two"), 3])
    @cases("limit", [1, 2], ids=lambda limit: f"at most {limit}")
    def is_small(number: int, limit: int) -> None:
        with pytest.raises(ValueError, match="small"):
            raise ValueError("small" if number <= limit else "large")

    with pytest.raises(BaseExceptionGroup, match="2 of 3 cases fail") as failure:
        is_small()
    first, second = failure.value.exceptions
    assert first.__notes__ == ["in the case at most 1", "in the case two"]
    assert isinstance(second, BaseExceptionGroup)
    assert second.__notes__ == ["in the case number=3"]
    assert [case.__notes__ for case in second.exceptions] == [["in the case at most 1"], ["in the case at most 2"]]


def test_an_assertion_that_raises_nothing_is_a_failure():
    """`pytest.raises` and `pytest.fail` report with an exception that is no `Exception`."""

    @cases("value", ["1", "x"])
    def is_refused(value: str) -> None:
        with pytest.raises(ValueError, match="invalid"):
            int(value)

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE") as failure:
        is_refused()
    assert failure.value.__notes__ == ["in the case value='1'"]


def test_other_parameters_are_fixtures():
    """They are the same for every case."""

    @cases("name", ["a"])
    def test(name: str, tmp_path: str) -> None:
        assert (name, tmp_path) == ("a", "here")

    assert list(inspect.signature(test).parameters) == ["tmp_path"]
    test(tmp_path="here")


def test_a_table_has_cases():
    """A test without any could not fail."""
    with pytest.raises(AssertionError, match="no case for name"):
        cases("name", [])
