"""`muster config`: what is in effect, and whether it is right."""

import json
import re
import tomllib

import pytest

from muster.toml import to_toml

EVERYTHING = """
fleet = "lab"
[store]
url = "postgresql+asyncpg://muster:hush@db/muster"
[broker]
password_file = "{secret}"
[checks.gemm]
interval_s = 600
params = {{ size = 256 }}
"""


@pytest.fixture
def settings_file(tmp_path):
    secret = tmp_path / "password"
    secret.write_text("hush hush\n")
    path = tmp_path / "muster.toml"
    path.write_text(EVERYTHING.format(secret=secret))
    return path


def test_show_prints_toml_that_reads_back(muster, settings_file):
    """What is shown can be used as a settings file; defaults and environment are part of it."""
    done = muster("config", "show", "--config", str(settings_file), env={"MUSTER_NODE": "n1"})
    shown = tomllib.loads(done.stdout)
    assert (shown["fleet"], shown["node"], shown["checks"]["gemm"]["params"]) == ("lab", "n1", {"size": 256})
    assert shown["http"]["listen"] == "127.0.0.1:8787"
    assert "# expected_gpus is not set" in done.stdout


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_show_tells_no_secret(muster, settings_file, options):
    """Of secrets in files only the name is shown, of one in a URL nothing."""
    done = muster("config", "show", "--config", str(settings_file), *options)
    assert done.returncode == 0
    assert "hush" not in done.stdout
    assert "postgresql+asyncpg://muster:***@db/muster" in done.stdout


CHAT = """
[plugins.webhook.targets.chat]
format = "slack"
url = "https://hooks.slack.com/services/T000/B000/HUSH"
[plugins.webhook.targets.mistyped]
url = "https:/user:HUSH@pager.example/"
[plugins.elsewhere]
peers = [{ at = "http://peer.example/?key=HUSH", in = "/etc/peers" }]
"""


@pytest.fixture
def chat(muster, tmp_path):
    """Shows settings with URLs of plugins."""
    path = tmp_path / "muster.toml"
    path.write_text(CHAT)
    environment = {
        "MUSTER_PLUGINS__WEBHOOK__TARGETS__OPS__URL": "https://hooks.slack.com/services/T000/B000/HUSH",
        "MUSTER_PLUGINS__OTHER": "https://other.example/HUSH",
    }

    def show(*options):
        done = muster("config", "show", "--config", str(path), *options, env=environment)
        assert done.returncode == 0, done.stderr
        assert "HUSH" not in done.stdout + done.stderr
        return done.stdout

    return show


def test_what_is_masked_is_no_value(chat):
    """The masked value is in a comment: as a value, `https://***` would be read as the URL."""
    text = chat()
    assert text.count('# url = "https://***"  # holds a secret: put in the whole value') == 3
    assert '# peers = [{at = "http://***", in = "/etc/peers"}]' in text
    plugins = tomllib.loads(text)["plugins"]
    assert plugins["webhook"]["targets"] == {"chat": {"format": "slack"}, "mistyped": {}, "ops": {}}
    assert plugins["elsewhere"] == {}
    assert "other" not in plugins


def test_what_is_shown_shows_the_same_again(muster, settings_file, tmp_path):
    """As a settings file, where nothing is masked; and where something is, the rest."""
    settings_file.write_text(settings_file.read_text().replace("muster:hush@", ""))
    first = muster("config", "show", "--config", str(settings_file), env={"MUSTER_NODE": "n1"})
    copy = tmp_path / "copy.toml"
    copy.write_text(first.stdout)
    assert muster("config", "show", "--config", str(copy)).stdout == first.stdout
    assert muster("config", "check", "--config", str(copy)).returncode == 0
    masked = muster(
        "config", "show", "--config", str(copy), env={"MUSTER_STORE__URL": "postgresql+asyncpg://m:hush@db/m"}
    )
    copy.write_text(masked.stdout)
    again = tomllib.loads(muster("config", "show", "--config", str(copy)).stdout)
    assert again == tomllib.loads(masked.stdout)
    assert "url" not in again["store"]


def test_show_tells_no_url_of_a_plugin(chat):
    """From the file or the environment, at any depth, whether a plugin knows the table or not; paths are shown."""
    plugins = json.loads(chat("--json"))["plugins"]
    urls = {name: target["url"] for name, target in plugins["webhook"]["targets"].items()}
    assert urls == dict.fromkeys(("chat", "mistyped", "ops"), "https://***")
    assert plugins["elsewhere"] == {"peers": [{"at": "http://***", "in": "/etc/peers"}]}
    assert plugins["other"] == "https://***"


NAMED = """
[checks.gemm]
params = { api_token = "HUSH" }
[plugins.elsewhere]
password = "HUSH"
pager_token = 4711
label_key = "example.com/rack"
tokens_file = "/etc/tokens"
use_secret = true
[plugins.elsewhere.env]
SLACK_SECRET = { first = "HUSH", rest = ["HUSH"] }
"""


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_show_hides_what_is_named_like_a_secret(muster, tmp_path, options):
    """Wherever it stands, and whether muster knows the plugin or not."""
    path = tmp_path / "muster.toml"
    path.write_text(NAMED)
    done = muster("config", "show", "--config", str(path), *options)
    assert done.returncode == 0, done.stderr
    assert not {"HUSH", "4711"} & set(re.findall(r"\w+", done.stdout))
    for shown in ("example.com/rack", "/etc/tokens", "true"):
        assert shown in done.stdout


A_PLUGIN = """
from pydantic import SecretStr

import muster

class Its(muster.Section):
    door: SecretStr
    house: str

@muster.hookimpl
def muster_configure(config):
    config.plugin("its", Its)
"""


def test_show_hides_what_a_plugin_marks_as_secret(muster, tmp_path):
    """By the type of the field, whatever its name; also where another table is wrong."""
    package = tmp_path / "its-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: its\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[muster]\nits = its_plugin\n")
    (tmp_path / "its_plugin.py").write_text(A_PLUGIN)
    path = tmp_path / "muster.toml"
    path.write_text('[plugins.its]\ndoor = "HUSH"\nhouse = "blue"\n[plugins.nobodys]\na = 1\n')
    done = muster("config", "show", "--config", str(path), env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert '# door = "***"' in done.stdout
    assert tomllib.loads(done.stdout)["plugins"] == {"disabled": [], "its": {"house": "blue"}, "nobodys": {"a": 1}}


ODD = "[plugins.other]\nlimits = [inf, -inf]\nday = 2026-01-31\nat = 2026-01-31T12:00:00+01:00\nclock = 07:32:00\n"


def test_show_keeps_infinities_and_times(muster, tmp_path):
    """TOML reads them back; JSON, which lacks them, has texts."""
    path = tmp_path / "muster.toml"
    path.write_text(ODD)
    shown = muster("config", "show", "--config", str(path))
    assert tomllib.loads(shown.stdout)["plugins"]["other"] == tomllib.loads(ODD)["plugins"]["other"]
    as_json = json.loads(muster("config", "show", "--config", str(path), "--json").stdout)["plugins"]["other"]
    assert as_json == {
        "limits": ["inf", "-inf"],
        "day": "2026-01-31",
        "at": "2026-01-31T12:00:00+01:00",
        "clock": "07:32:00",
    }


def test_show_has_a_deprecated_setting_only_if_it_is_set(muster, tmp_path):
    """Otherwise its copies would bring it into new settings files."""
    shown = tomllib.loads(muster("config", "show").stdout)
    assert "trust_loopback" in shown["http"]
    assert "trust_loopback" not in shown["quarantine"]
    for value in ("true", "false"):
        shown = muster("config", "show", env={"MUSTER_QUARANTINE__TRUST_LOOPBACK": value}).stdout
        assert tomllib.loads(shown)["quarantine"]["trust_loopback"] is (value == "true")


def test_a_list_that_is_too_short_is_explained(muster):
    """In our words, and not by how the settings are checked."""
    refused = muster("config", "check", env={"MUSTER_SUITES__X__STEPS": "[]"})
    assert refused.stderr == "muster: setting 'suites.x.steps': must have at least 1 item, not 0\n"


def test_show_as_json(muster, settings_file):
    """The same settings as JSON; the environment can name the file."""
    done = muster("config", "show", "--json", env={"MUSTER_CONFIG": str(settings_file)})
    assert json.loads(done.stdout)["checks"]["gemm"]["interval_s"] == 600


def test_check_says_ok(muster, settings_file):
    """Right settings are answered with OK and exit code 0."""
    done = muster("config", "check", "--config", str(settings_file))
    assert (done.returncode, done.stdout) == (0, "OK\n")


def test_check_lists_all_that_is_wrong(muster, tmp_path):
    """Check names, check parameters and files are held against what is there."""
    path = tmp_path / "muster.toml"
    path.write_text(
        '[broker]\nca_file = "/nowhere"\n[checks.gem]\ninterval_s = 1\n[checks.gemm]\nparams = { no_such_param = 1 }'
    )
    done = muster("config", "check", "--config", str(path))
    assert (done.returncode, done.stdout) == (64, "")
    for problem in (
        "setting 'broker.ca_file': cannot read /nowhere",
        "unknown check 'checks.gem'; did you mean 'checks.gemm'?",
        "unknown parameter of gemm 'no_such_param'",
    ):
        assert problem in done.stderr


def test_check_reads_the_references(muster, tmp_path):
    """The operator's references are held against what is there, too."""
    path = tmp_path / "references.toml"
    path.write_text('[[reference]]\ncheck = "gem"\nmetric = "tflops"\nfail_below = 1\nsource = "x"\n')
    done = muster("config", "check", env={"MUSTER_REFERENCES_FILE": str(path)})
    assert done.returncode == 64
    assert "references.toml, row 1: unknown check 'gem'; did you mean 'gemm'?" in done.stderr


def test_check_lets_pass_what_may_belong_to_a_plugin_that_failed(muster, tmp_path):
    """As the agent does; that the plugin failed is told on stderr."""
    package = tmp_path / "broken-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[muster]\nbroken = no_such_module\n")
    done = muster("config", "check", env={"PYTHONPATH": str(tmp_path), "MUSTER_CHECKS__ITS_CHECK__INTERVAL_S": "60"})
    assert (done.returncode, done.stdout) == (0, "OK\n")
    assert "no_such_module" in done.stderr


def test_check_refuses_a_plugins_wrong_section(muster):
    """Plugins' own tables are checked by their models."""
    done = muster("config", "check", env={"MUSTER_PLUGINS__SIMULATED__ENABLD": "1"})
    assert done.returncode == 64
    assert "did you mean 'plugins.simulated.enabled'?" in done.stderr


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"a": 1, "b": 'x\n"ü', "c": [1, 2.5, "y"], "d": True},
        {"t": {"x": 1, "u": {"y": [{"z": 1, "w": {"v": []}}]}}, "last": False},
        {"odd key": {"7 of 9": 1, "": 2}},
        {"t": {}, "u": {"v": {}}},
    ],
)
def test_toml_reads_back_the_same(table):
    """Tables, lists, inline tables and odd keys survive."""
    assert tomllib.loads(to_toml(table)) == table


def test_toml_has_no_null():
    """A value that is not set is a comment."""
    assert to_toml({"a": None}) == "# a is not set"


def test_a_table_that_has_only_tables_has_no_line_of_its_own():
    """It says nothing to the reader."""
    assert to_toml({"a": {"b": {"c": 1}}}) == "[a.b]\nc = 1"


PART = """
from muster.errors import SettingsError

def check(config, checks):
    if config.settings.fleet == "wrong":
        raise SettingsError("fleet: not this one")
    yield f"{config.settings.fleet} with {'gemm' if checks and 'gemm' in checks else 'unknown checks'}"
"""


@pytest.fixture
def a_part(tmp_path):
    """A package whose entry point has a say about the settings."""
    package = tmp_path / "part-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: part\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[muster.config_checks]\npart = its_part:check\n")
    (tmp_path / "its_part.py").write_text(PART)
    return tmp_path


def test_check_asks_every_part(muster, a_part):
    """What an entry point in the group `muster.config_checks` says is printed before OK."""
    done = muster("config", "check", env={"PYTHONPATH": str(a_part), "MUSTER_FLEET": "lab"})
    assert (done.returncode, done.stdout) == (0, "lab with gemm\nOK\n")


def test_check_tells_a_part_when_not_all_checks_are_known(muster, a_part):
    """Since a plugin has failed to load, whose checks may be meant."""
    entry_points = a_part / "part-1.0.dist-info" / "entry_points.txt"
    entry_points.write_text(entry_points.read_text() + "[muster]\nbroken = no_such_module\n")
    done = muster("config", "check", env={"PYTHONPATH": str(a_part), "MUSTER_FLEET": "lab"})
    assert (done.returncode, done.stdout) == (0, "lab with unknown checks\nOK\n")


def test_check_refuses_what_a_part_refuses(muster, a_part):
    """Together with all else that is wrong."""
    done = muster(
        "config",
        "check",
        env={"PYTHONPATH": str(a_part), "MUSTER_FLEET": "wrong", "MUSTER_BROKER__CA_FILE": "/nowhere"},
    )
    assert (done.returncode, done.stdout) == (64, "")
    assert "fleet: not this one" in done.stderr
    assert "cannot read /nowhere" in done.stderr


def test_the_check_says_when_it_had_no_file(muster, tmp_path):
    """An OK about the defaults must not look like one about the file that somebody had in mind."""
    assert muster("config", "check").stderr == (
        "muster: no settings file: this was the environment and the defaults; name one with --config\n"
    )
    path = tmp_path / "muster.toml"
    path.touch()
    assert muster("config", "check", env={"MUSTER_CONFIG": str(path)}).stderr == ""
