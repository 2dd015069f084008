"""What holds for every check that comes with muster: what it says of itself is whole, and true of its source.

A code that is put together from parts at run time is for the tests of its check; all that stand written are found here.
"""

import ast
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.cases import cases

from muster.check import AnyCheck, describe
from muster.config import Config, Settings
from muster.params_schema import require_fit
from muster.plugins import collect_checks, load
from muster.references import shipped

SETTINGS = Settings.model_validate(
    {"plugins": {"simulated": {"enabled": True}, "script": {"checks": {"example": {"path": "/bin/true"}}}}}
)
"""Brings those checks as well that are there only when somebody asks for them."""

LOADED = load(Config(SETTINGS))
CHECKS = collect_checks(LOADED)

PLUGINS = Path(str(resources.files("muster_plugins")))

CODE = re.compile(rf"({'|'.join(map(re.escape, CHECKS))})\.[a-z][a-z0-9_]*(?<!toml)(?<!json)")
"""The code of a finding; files that belong to a check are named alike."""

WITHOUT_CHECKS = {"artifacts", "cloud", "dmi", "reservation_file", "slurm", "webhook"}
"""Plugins that tell what a node is or whether others are at work on it, keep them away, act on it, or keep reports."""

OF_ANOTHER_NAME = {"node_conditions": "kubernetes"}
"""The plugins of checks that are not named like them."""

MODULES = sorted(path for room in ("checks", "shared") for path in (PLUGINS / room).rglob("*.py"))

WORD = re.compile(r"\.[a-z][a-z0-9_]*")
"""What stands behind the check's name in a code."""

STANDS_IN = {
    ("nvml", "temperature_c"): "its headroom is what should be judged; it is where the device does not tell a limit"
}
"""Metrics that have references and yet need none, with the reason."""


VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2,
    4,
    16,
    64,
    100,
    4096,
    1 << 20,
    1 << 63,
    0.5,
    1.0,
    2.5,
    1e6,
    "",
    "x",
    "2M",
    "NET/IB",
    [],
    [64] * 3,
)
"""Values that every parameter is tried with, besides those of its own schema."""


def values_in(parameter) -> list:
    """The values of a parameter's enumeration, one by one and as lists."""
    kinds = parameter.get("anyOf", [parameter])
    named = [value for kind in kinds for value in kind.get("enum", kind.get("items", {}).get("enum", []))]
    return [*named, *([value] for value in named), named]


def accepts(check: AnyCheck, params) -> bool:
    """Whether the check accepts parameters without converting their types."""
    try:
        check.params.model_validate_json(json.dumps(params), strict=True)
    except ValidationError:
        return False
    return True


def ends_of(check: AnyCheck) -> set[str]:
    """What stands behind the check's name in its codes."""
    return {code.removeprefix(check.name) for code in check.finds}


CODES = {code for check in CHECKS.values() for code in check.finds}
ENDS = {end for check in CHECKS.values() for end in ends_of(check)}

every_check = pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
every_module = pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PLUGINS)))


def test_every_plugin_is_looked_at():
    """All have loaded, and each brings a check of its name; `script` one for each script."""
    assert LOADED.failed == ()
    brought = {OF_ANOTHER_NAME.get(name, name.partition(".")[0]) for name in CHECKS}
    assert {info.name for info in LOADED.infos} == brought | WITHOUT_CHECKS


@every_check
def test_it_says_what_it_finds(check: AnyCheck):
    """Every code begins with the check's name and has a meaning of one line."""
    assert check.finds
    for code, meaning in check.finds.items():
        assert code.startswith(f"{check.name}.")
        assert meaning.strip()
        assert "\n" not in meaning


@every_check
def test_it_says_what_it_costs_and_who_else_checks_it(check: AnyCheck):
    """What it costs fits into its deadline; what a script costs only its owner knows."""
    assert check.precedent.strip()
    if not check.name.startswith("script."):
        assert check.cost_s is not None
        assert 0 < check.cost_s <= check.timeout_s


@every_check
def test_its_parameters_are_announced(check: AnyCheck):
    """By name, with their defaults; the announced schema refuses no value that the check accepts."""
    flat = describe(check).params
    parameters: Any = flat["properties"]
    assert list(parameters) == list(check.params.model_fields)
    for name, parameter in parameters.items():
        assert "default" in parameter
        for value in (*VALUES, parameter["default"], *values_in(parameter)):
            if accepts(check, {name: value}):
                require_fit(check.name, flat, {name: value})


@cases("row", shipped(), ids=lambda row: row.key)
def test_every_reference_judges_something(row):
    """Its check is there and says that the metric is judged, so that a run without a reference is told of."""
    assert row.metric in CHECKS[row.check].judged or (row.check, row.metric) in STANDS_IN


def test_simulated_devices_are_judged_as_real_ones():
    """Under codes of their own name."""
    assert ends_of(CHECKS["simulated"]) == ends_of(CHECKS["nvml"])


def nodes(module: Path, kind):
    """All parts of a module's source that are of this kind."""
    return [node for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))) if isinstance(node, kind)]


def texts(parts) -> list[str]:
    """The texts among parts of a source."""
    return [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def codes_in(module: Path) -> set[str]:
    """The codes that stand in a module's source as such."""
    return {text for text in texts(nodes(module, ast.Constant)) if CODE.fullmatch(text)}


def ends_in(module: Path) -> set[str]:
    """What stands behind a name in f"{NAME}.what", where a finding is made."""
    given = [keyword.value for keyword in nodes(module, ast.keyword) if keyword.arg == "code"]
    given += [argument for call in nodes(module, ast.Call) for argument in call.args[:1]]
    ends = [text.values[-1] for text in given if isinstance(text, ast.JoinedStr)]
    return {end for end in texts(ends) if WORD.fullmatch(end)}


@every_module
def test_no_code_is_kept_secret(module):
    """Every code that stands in the source is among those that its check says it can find."""
    assert codes_in(module) <= CODES
    assert ends_in(module) <= ENDS


def test_codes_are_recognised_in_a_source():
    """In either form; or else the test above would find nothing."""
    assert "training.loss_not_finite" in codes_in(PLUGINS / "checks/training/check.py")
    assert ".wrong_elements" in ends_in(PLUGINS / "shared/collectives/judgement.py")
    assert ".wrong_transport" in ends_in(PLUGINS / "shared/nccl/transport.py")
