"""Many small cases in one test: a table, of which every case that fails is named. The test may be `async` or a method.

`@cases` is written as `@pytest.mark.parametrize` is. That makes a test of each case, which costs some milliseconds to
collect, to set up and to report: for thousands of cases that take microseconds, more than all they do.

All cases run in one test, so they share its fixtures: a test that changes what a fixture made keeps `parametrize`.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

LONGEST_NAME = 300

Test = Callable[..., Any]


def cases(
    names: str | Sequence[str], table: Iterable[Any], ids: Callable[[Any], str] | Iterable[str] | None = None
) -> Callable[[Test], Test]:
    """Runs a test once for each row of `table`, whose values are the test's parameters `names`.

    `ids` are the names of the rows, or say how a value is called; else a row is called by its values.
    """
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    rows = _rows(parameters, list(table), ids)
    assert rows, f"no case for {', '.join(parameters)}"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def every_case(*itself: Any, **fixtures: Any) -> None:
            failures: list[BaseException] = []
            for name, values in rows:
                with _kept(failures, name, values):
                    test(*itself, **values, **fixtures)
            _raise(failures, len(rows))

        @functools.wraps(test)
        async def every_async_case(*itself: Any, **fixtures: Any) -> None:
            failures: list[BaseException] = []
            for name, values in rows:
                with _kept(failures, name, values):
                    await test(*itself, **values, **fixtures)
            _raise(failures, len(rows))

        every: Test = every_async_case if inspect.iscoroutinefunction(test) else every_case
        signature = inspect.signature(test)
        fixtures = [given for given in signature.parameters.values() if given.name not in parameters]
        every.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return every

    return decorate


@contextmanager
def _kept(failures: list[BaseException], name: str, values: dict[str, Any]) -> Iterator[None]:
    """Adds the failure of a case to the others, with the name of the case."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as failure:
        failure.add_note(f"in the case {name or _name(values)}")
        failures.append(failure)


def _raise(failures: list[BaseException], cases: int) -> None:
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {cases} cases fail", failures)


def _rows(
    parameters: list[str], table: list[Any], ids: Callable[[Any], str] | Iterable[str] | None
) -> list[tuple[str, dict[str, Any]]]:
    """By row, its name, which is empty where nobody has named it, and its values by parameter."""
    named = None if ids is None or callable(ids) else [*ids]
    rows = []
    for place, row in enumerate(table):
        is_param = isinstance(row, type(pytest.param()))
        values = row.values if is_param else (row,) if len(parameters) == 1 else row
        if is_param and row.id is not None:
            name = str(row.id)
        elif callable(ids):
            name = ", ".join(filter(None, map(ids, values)))
        else:
            name = "" if named is None else named[place]
        rows.append((name, dict(zip(parameters, values, strict=True))))
    return rows


def _name(values: dict[str, Any]) -> str:
    name = ", ".join(f"{parameter}={value!r}" for parameter, value in values.items())
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
