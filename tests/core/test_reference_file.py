"""The references that an operator writes for one machine."""

import pytest

from muster.errors import SettingsError
from muster.reference_file import read_references
from muster.references import Origin

GOOD = """
[[reference]]
check = "gemm"
metric = "tflops"
when = { gpu_model = ["A", "B"], nodes = { at_least = 2 } }
fail_below = 100.0
source = "our own acceptance"
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "references.toml"
        path.write_text(text)
        return path

    return write


def test_rows_are_the_operators(written):
    """They have the shape of the shipped ones, and no origin of their own."""
    (row,) = read_references(written(GOOD), {"gemm": ("tflops",)})
    assert (row.check, row.metric, row.bounds, row.origin) == ("gemm", "tflops", {"fail_below": 100}, Origin.OPERATOR)
    assert row.when == {"gpu_model": ["A", "B"], "nodes": {"at_least": 2}}


def test_without_a_file_there_are_none(written):
    """Neither an unset setting nor a file without rows is wrong."""
    assert read_references(None) == ()
    assert read_references(written("reference = []")) == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fail_belo = 1", "unknown field 'fail_belo'; did you mean 'fail_below'?"),
        ('origin = "shipped"', "unknown field 'origin'"),
        ('warn_below = "much"', "field 'warn_below': must be a valid number"),
        ("warn_below = true", "field 'warn_below': must be a valid number"),
        ("warn_below = 1", "fail_below, warn_below must not fall in this order"),
    ],
)
def test_a_wrong_row_is_told_with_its_number(written, line, words):
    """Which row, which key, what was wrong and what would be right."""
    with pytest.raises(SettingsError) as refused:
        read_references(written(GOOD + GOOD + line))
    assert f"references.toml, row 2: {words}" in str(refused.value)


def test_all_that_is_wrong_is_told_at_once(written):
    """One line for each wrong row."""
    text = GOOD + '[[reference]]\nmetric = "x"\nsource = "x"\n' + GOOD.replace('"gemm"', '"gem"')
    with pytest.raises(SettingsError) as refused:
        read_references(written(text), {"gemm": ("tflops",), "nvml": ()})
    path, (first, second) = written(text), str(refused.value).splitlines()
    assert first == f"{path}, row 2: field 'check': must be given"
    assert second == f"{path}, row 3: unknown check 'gem'; did you mean 'gemm'? (valid: gemm, nvml)"


def test_while_not_all_checks_are_known_any_name_is_taken(written):
    """It may be that of a plugin that has failed to load."""
    assert len(read_references(written(GOOD), None)) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[reference]\ncheck = 'gemm'", r"\[\[reference\]\]"),
        (GOOD + "[more]\n", r"\[\[reference\]\]"),
        ("", r"\[\[reference\]\]"),
        ("reference = [1]", "row 1: must be a table"),
        ("reference", "is not TOML"),
    ],
)
def test_a_file_of_another_kind_is_refused(written, text, words):
    """It says what would be in one."""
    with pytest.raises(SettingsError, match=words):
        read_references(written(text))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    """By the name of the setting and of the file."""
    with pytest.raises(SettingsError, match=r"references_file: cannot read .*nothing\.toml: No such file"):
        read_references(tmp_path / "nothing.toml")
