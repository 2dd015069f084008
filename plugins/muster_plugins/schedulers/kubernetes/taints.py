"""Taints, in kubectl's notation and in the API's."""

import re
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from muster.model import Json

KEY = r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
VALUE = r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"

_NOTATION = re.compile(rf"(?P<key>{KEY})(=(?P<value>{VALUE}))?:(?P<effect>[A-Za-z]+)")


class Taint(BaseModel):
    """A taint. Key and effect identify it on a node. Fields of others are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    key: str
    effect: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"

    def is_among(self, taints: Iterable["Taint"]) -> bool:
        """Whether one of them has this key and effect."""
        return any(taint.key == self.key and taint.effect == self.effect for taint in taints)


def parse_taint(text: str) -> Taint:
    """A taint from `key[=value]:effect`. Raises ValueError if the text is not one."""
    found = _NOTATION.fullmatch(text)
    if found is None:
        raise ValueError("must be key[=value]:effect, for example example.com/name:NoSchedule")
    value = {"value": found["value"]} if found["value"] else {}
    return Taint(key=found["key"], effect=found["effect"], **value)


def replaced(taints: Iterable[Taint], old: Taint | None, new: Taint | None) -> list[Taint]:
    """The taints with `new` in place of `old`. If `new` is among them already, it keeps its place."""
    removed = [] if old is None or (new and new.is_among([old])) else [old]
    kept = [taint for taint in taints if not taint.is_among(removed)]
    return kept if new is None or new.is_among(kept) else [*kept, new]


def taints_patch(taints: Iterable[Taint]) -> Json:
    """The merge patch that gives a node exactly these taints: they are one value to the API."""
    return {"spec": {"taints": [taint.model_dump(exclude_unset=True) for taint in taints]}}
