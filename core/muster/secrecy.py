"""Hides secrets in settings before errors, logs and `muster config show` show them."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

HIDDEN = "***"


class Masked(str):
    """A text in place of a secret: it may be shown, but is not the value of the setting."""


_SECRET_KEY = re.compile(
    r"(^|[._-])(url|uri|dsn|proxy|token|password|passwd|secret|credentials?|auth|authorization|cookie|headers?|key)$",
    re.IGNORECASE,
)
"""Keys whose values may be secret. A key that ends in `_file` holds the name of a file, which is no secret."""

_SECRET_NAME = re.compile(
    r"(token|password|passwd|passphrase|secret|credential|authorization|cookie|(api|access|private|signing)[._-]?key)s?$",
    re.IGNORECASE,
)
"""Keys whose values no list of settings shows. `url` and `key` are not among them: URLs are masked in part, and a key
alone may be that of a label.
"""

_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")


def secrets_in(key: str, value: Any) -> Iterator[str]:
    """The texts in a value that may hold a secret, because of their key or their form.

    A text may hold a secret if it contains `@` or `://`, like a URL with a password, or `{`, like a table given as
    text.
    """
    match value:
        case dict():
            for name, item in value.items():
                yield from secrets_in(f"{key}.{name}", item)
        case list() | tuple():
            for item in value:
                yield from secrets_in(key, item)
        case str() if _SECRET_KEY.search(key) or any(mark in value for mark in ("@", "://", "{")):
            yield value


def without_quotes_of(secrets: Iterable[str], message: str) -> str:
    """The message with every quoted part of a secret hidden. Libraries quote text that they cannot read."""

    def hidden(found: re.Match[str]) -> str:
        quoted = _unquoted(found[0])
        return f"'{HIDDEN}'" if any(quoted in secret for secret in secrets) else found[0]

    return _QUOTED.sub(hidden, message)


def without_secrets(value: Any, marked: Collection[Any] = ()) -> Any:
    """A setting of any shape without secrets; each secret is replaced by a Masked text.

    It hides passwords and queries of URLs, the values of keys that are named like a secret, and values in `marked`.
    """
    match value:
        case Masked():
            return value
        case dict():
            return {key: _at(key, item, marked) for key, item in value.items()}
        case list() | tuple():
            return [without_secrets(item, marked) for item in value]
        case _ if value in marked:
            return Masked(HIDDEN)
        case str() if "://" in value:
            return _url_without_secrets(value)
    return value


def _at(key: str, value: Any, marked: Collection[Any]) -> Any:
    return _all_hidden(value) if _SECRET_NAME.search(key) else without_secrets(value, marked)


def _all_hidden(value: Any) -> Any:
    """The value with all its content hidden, except `true` and `false`, which are no secrets."""
    match value:
        case dict():
            return {key: _all_hidden(item) for key, item in value.items()}
        case list() | tuple():
            return list(map(_all_hidden, value))
        case None | bool():
            return value
    return Masked(HIDDEN)


def _url_without_secrets(url: str) -> str:
    scheme, _, rest = url.partition("://")
    given, at, place = rest.rpartition("@")  # the last @, because a password may contain any character
    user, colon, _ = given.partition(":")
    place, question, _ = place.partition("?")
    shown = f"{user}:{HIDDEN}@" if colon else f"{HIDDEN}@" if at else ""
    text = f"{scheme}://{shown}{place}" + (f"?{HIDDEN}" if question else "")
    return Masked(text) if shown or question else url


def _unquoted(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return text[1:-1]
