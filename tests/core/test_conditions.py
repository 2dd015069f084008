"""Conditions of references: what meets them, what they may look like, and how they are told."""

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.cases import cases

from muster.conditions import Condition, in_words, is_met

CONDITION: TypeAdapter = TypeAdapter(Condition)
RANGE = {"at_least": 2, "at_most": 8}


@cases(
    ("condition", "meets", "does_not"),
    [
        ("H100", ["H100"], ["H10", "h100", None, ["H100"]]),
        (2, [2, 2.0], [3, "2", True, None]),
        (1, [1], [True]),
        (True, [True], [False, 1, "true", None]),
        (["H100", "H200"], ["H100", "H200"], ["B200", None]),
        ([1, 2], [1, 2], [True, 3]),
        (RANGE, [2, 3.5, 8], [1, 8.1, True, "3", None, [3]]),
        ({"at_least": 2}, [2, 1e9], [1.9, float("nan"), 10**400]),
        ({"at_most": 8}, [-1, 8], [9, None]),
    ],
)
def test_what_meets_a_condition(condition, meets, does_not):
    """A value is met by its equal, a list by any of its values, a range by a number in it; true is not 1."""
    assert CONDITION.validate_python(condition) == condition
    assert [fact for fact in meets if not is_met(condition, fact)] == []
    assert [fact for fact in does_not if is_met(condition, fact)] == []


@cases(
    "wrong",
    [
        None,
        [],
        {},
        [[1]],
        [None],
        {"at_lest": 1},
        {"at_least": "1"},
        {"at_least": True},
        {"at_least": None},
        {"at_least": 9, "at_most": 8},
        {"at_least": 1, "more": 2},
        {"at_least": [1]},
        float("nan"),
        float("inf"),
        10**400,
        {"at_least": 10**400},
    ],
)
def test_a_wrong_condition_is_refused_with_what_would_be_right(wrong):
    """Nothing is taken that no fact could ever meet."""
    with pytest.raises(ValidationError, match=r"any of them.*\{at_least = 1, at_most = 8\}"):
        CONDITION.validate_python(wrong)


@cases(
    ("condition", "words"),
    [
        ("H100", '"H100"'),
        (False, "false"),
        ([1, "a"], '1 or "a"'),
        (RANGE, "at least 2 and at most 8"),
        ({"at_most": 8}, "at most 8"),
    ],
)
def test_a_condition_in_words(condition, words):
    """As it stands behind `must be`."""
    assert in_words(condition) == words
