"""The page of all hooks."""

import ast
import inspect
from typing import Any

from generator.markdown import NOTE, page

from muster import hookspecs


def hooks() -> str:
    """Every hook with its signature and its docstring."""
    lines = [
        NOTE,
        "# Hooks",
        inspect.cleandoc(hookspecs.__doc__ or ""),
        "Mark an implementation with `@muster.hookimpl`. It takes those of the parameters, by name, that it needs.",
    ]
    for title, names in (("Contribute", hookspecs.CONTRIBUTE), ("Notify", hookspecs.NOTIFY)):
        lines.append(f"## {title}")
        for name in names:
            hook = getattr(hookspecs, name)
            lines += [f"### {name}", f"```python\n{_signature(hook)}\n```", inspect.cleandoc(hook.__doc__)]
    return page(lines)


def _signature(hook: Any) -> str:
    """The hook's `def` line as it is written in the source, in one line."""
    definition = ast.parse(inspect.getsource(hook)).body[0]
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    definition.body, definition.decorator_list = [], []
    for argument in definition.args.args:
        argument.annotation = _unquoted(argument.annotation)
    definition.returns = _unquoted(definition.returns)
    return ast.unparse(definition)


def _unquoted(annotation: ast.expr | None) -> ast.expr | None:
    """The annotation as a reader needs it: some are in quotes, so that an agent does not import their models."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation
