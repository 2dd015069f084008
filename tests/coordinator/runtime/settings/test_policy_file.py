"""The operator's rows: what is read, and what is refused with what would be right."""

import pytest
from pydantic import Field

from muster.check import Check, Params, Scope
from muster.errors import SettingsError
from muster.model import Measurement
from muster_coordinator.runtime.settings.known_findings import known_findings
from muster_coordinator.runtime.settings.policy_file import read_policy, shipped_rows


class NoParams(Params):
    of_no_use: int = Field(1)


def check(name, *codes):
    return Check(
        name=name,
        summary=name,
        scope=Scope.NODE,
        params=NoParams,
        measure=lambda params, context: Measurement(),
        judge=lambda measurement, references: [],
        timeout_s=1.0,
        finds=dict.fromkeys(codes, "found"),
    )


CHECKS = {
    "gemm": check("gemm", "gemm.slow", "gemm.corrupt"),
    "nvml": check("nvml", "nvml.xid", "nvml.too_hot"),
    "silent": check("silent"),
    "script.nfs": check("script.nfs", "script.nfs.failed", "script.nfs.*"),
}
KNOWN = known_findings(CHECKS)


@pytest.fixture
def read(tmp_path):
    """The policy with the operator's rows in `text`, which may leave the reasons out."""

    def read(text, known=KNOWN):
        path = tmp_path / "policy.toml"
        path.write_text(text.replace("[[row]]", '[[row]]\nreason = "because"'))
        return read_policy(path, known)

    return read


def test_without_a_file_the_shipped_rows_are_in_effect():
    """They are all there is until an operator says more."""
    assert read_policy(None).rows == shipped_rows()


def test_the_operators_rows_go_first(read):
    """They decide before those that come with muster, which stay."""
    rows = read('[[row]]\nname = "mine"\ncodes = ["gemm.slow"]\nproof = "ONCE"\nurgency = 99').rows
    assert (rows[0].name, rows[0].urgency, rows[0].source) == ("mine", 99, "the operator")
    assert rows[1:] == shipped_rows()


def test_shipped_rows_can_be_switched_off(read):
    """By name, and their names are free again."""
    rows = read('without = ["heat"]\n[[row]]\nname = "heat"\ncodes = ["nvml.too_hot"]\nafter_s = 60').rows
    assert [row.name for row in rows].count("heat") == 1
    assert rows[0].after_s == 60


def test_all_shipped_rows_can_be_replaced(read):
    """Then only the operator's count."""
    rows = read('replace = true\n[[row]]\nname = "mine"\ncodes = ["gemm.*"]').rows
    assert [row.name for row in rows] == ["mine"]


@pytest.mark.parametrize(
    "codes",
    [
        '["gemm.*"]',
        '["*.slow", "run.hung"]',
        '["plugins.failed"]',
        '["silent.anything"]',
        '["silent.*"]',
        '["script.nfs.stale"]',
    ],
)
def test_codes_that_there_can_be(read, codes):
    """Those that checks name, those of any run, of silent nodes, and of checks that do not tell all of their own."""
    assert read(f'[[row]]\nname = "mine"\ncodes = {codes}').rows[0].name == "mine"


def test_any_code_may_be_named_where_not_all_checks_are_known(read):
    """As when a plugin has failed to load; whatever else is wrong is still refused."""
    assert read('[[row]]\nname = "mine"\ncodes = ["its.code"]', known=None).rows[0].codes == ("its.code",)
    with pytest.raises(SettingsError, match="unknown field"):
        read('[[row]]\nname = "mine"\ncodes = ["its.code"]\nurgent = 1', known=None)


ROW = '[[row]]\nname = "mine"\ncodes = ["gemm.slow"]\n'
SILENT = '[[row]]\nname = "silent"\ncodes = ["node.lost"]\n'


@pytest.mark.parametrize(
    "text",
    [
        SILENT + 'proof = "ONCE"\nafter_s = 900',
        SILENT + 'service = "IN_SERVICE"',
        SILENT.replace('["node.lost"]', '["node.*", "gemm.slow"]'),
    ],
)
def test_what_can_be_said_about_silence(read, text):
    """How long it must last, that it is of no account, and more in a row that is about other findings too."""
    assert read(text).rows[0].name == "silent"


@pytest.mark.parametrize("rest", ["", 'proof = "TWICE"', 'proof = "ONCE"\nrepeats = 2\nwithin_s = 600'])
def test_silence_that_must_be_found_again_is_refused(read, rest):
    """No run can find it again, so that such a row would never take a node out."""
    with pytest.raises(SettingsError, match=r"row silent: can never drain a node, .* set proof = 'ONCE'"):
        read(SILENT + rest)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= 1", "policy.toml is not TOML"),
        ("replaces = true", "unknown field 'replaces'; did you mean 'replace'?"),
        ('[row]\nname = "mine"', "each row begins with [[row]], in two brackets"),
        ('row = ["mine"]', "field 'row.0': must be a table"),
        ('without = ["hot"]', "unknown shipped row in without 'hot'; did you mean 'host'?"),
        ('replace = true\nwithout = ["heat"]', "give one of them"),
        ('[[row]]\ncodes = ["gemm.slow"]', "policy.toml, row 1: field 'name': must be given"),
        (ROW + "urgencies = 3", "policy.toml, row mine: unknown field 'urgencies'; did you mean 'urgency'?"),
        (ROW + "urgency = 101", "row mine: field 'urgency': must be less than or equal to 100 (got 101)"),
        (ROW + "repeats = 3", "row mine: repeats and within_s go together"),
        (
            ROW + 'proof = "THRICE"',
            "row mine: field 'proof': must be 'ONCE', 'TWICE', 'LOCALISED' or 'COMPARED'",
        ),
        (ROW + 'service = "HELD"', "row mine: field 'service': must be 'CORDONED' or 'IN_SERVICE'"),
        (
            ROW + 'service = "IN_SERVICE"\nafter_s = 5',
            "row mine: service = 'IN_SERVICE' drains no node, so after_s has no effect",
        ),
        ('[[row]]\nname = "mine"\ncodes = ["gem.slow"]', "unknown finding code 'gem.slow'; did you mean 'gemm.slow'?"),
        ('[[row]]\nname = "mine"\ncodes = ["gemm.hot*"]', "row mine: unknown finding code 'gemm.hot*'"),
        (ROW + 'checks = ["gem"]', "row mine: unknown check 'gem'; did you mean 'gemm'?"),
        (ROW + 'checks = ["nvml"]', "nothing with these codes is ever found by checks nvml with proof TWICE"),
        (ROW + 'proof = "COMPARED"', "nothing with these codes is ever found by checks * with proof COMPARED"),
        ('[[row]]\nname = "mine"\ncodes = ["gemm.corrupt"]\nproof = "LOCALISED"', "sweeps convict with <check>.slow"),
        (ROW + ROW.replace("slow", "corrupt"), "two rows have the name 'mine': give each its own"),
        (ROW.replace("mine", "heat"), "row 'heat' has the name of a shipped one"),
    ],
)
def test_what_is_wrong_is_refused(read, text, message):
    """The error names the file, the row, and what would be right."""
    with pytest.raises(SettingsError) as refused:
        read(text)
    assert "policy.toml" in str(refused.value)
    assert message in str(refused.value)


def test_all_that_is_wrong_is_told_at_once(read):
    """One line for each thing."""
    with pytest.raises(SettingsError) as refused:
        read('without = ["hot"]\n' + ROW + "urgency = 101\n" + ROW.replace("mine", "other") + "fresh = 1")
    assert len(str(refused.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("first", "second", "shadowed"),
    [
        ('codes = ["gemm.*"]', 'codes = ["gemm.slow"]', True),
        ('codes = ["gemm.slow"]', 'codes = ["gemm.*"]', False),
        ('codes = ["gemm.*"]', 'codes = ["gemm.slow"]\nseverity = "WARNING"', False),
        ('codes = ["gemm.*"]\nseverity = "WARNING"', 'codes = ["gemm.slow"]', True),
        ('codes = ["gemm.*"]\nproof = "ONCE"', 'codes = ["gemm.slow"]\nproof = "LOCALISED"', True),
        ('codes = ["gemm.*"]\nproof = "LOCALISED"', 'codes = ["gemm.slow"]', False),
        ('codes = ["*"]\nchecks = ["nvml"]', 'codes = ["gemm.slow"]', False),
        ('codes = ["nvml.xid"]\nwhen = { xid = 79 }', 'codes = ["nvml.xid"]', False),
        ('codes = ["nvml.xid"]', 'codes = ["nvml.xid"]\nwhen = { xid = 79 }', True),
        ('codes = ["nvml.xid"]\nwhen = { xid = [79, 95] }', 'codes = ["nvml.xid"]\nwhen = { xid = 79 }', True),
        ('codes = ["nvml.xid"]\nwhen = { xid = 79 }', 'codes = ["nvml.xid"]\nwhen = { xid = [79, 95] }', False),
        (
            'codes = ["nvml.xid"]\nwhen = { xid = { at_least = 79 } }',
            'codes = ["nvml.xid"]\nwhen = { xid = { at_least = 79 } }',
            True,
        ),
        ('codes = ["silent.*"]', 'codes = ["silent.full"]', True),
        ('codes = ["silent.empty"]', 'codes = ["silent.full"]', False),
    ],
)
def test_a_row_that_can_never_decide_is_refused(read, first, second, shadowed):
    """An earlier row of the file takes all that it could match."""
    text = f'[[row]]\nname = "first"\n{first}\n[[row]]\nname = "second"\n{second}\n'
    if not shadowed:
        assert len(read(text).rows) == 2 + len(shipped_rows())
        return
    with pytest.raises(SettingsError, match="row second: can never decide, because row 'first' before it takes all"):
        read(text)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    """The setting is named that names it."""
    with pytest.raises(SettingsError, match=r"quarantine.policy_file: cannot read .*: No such file"):
        read_policy(tmp_path / "policy.toml")
