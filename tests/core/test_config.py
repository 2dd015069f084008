"""Settings: file, environment, precedence, and what every mistake is answered with."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import Field
from tests.cases import cases

from muster.addresses import is_loopback, split_address
from muster.agent_settings import AgentSettings
from muster.config import (
    BrokerSettings,
    CheckSettings,
    Config,
    HttpSettings,
    LogSettings,
    PluginsSettings,
    Settings,
    StoreSettings,
    load,
)
from muster.errors import SettingsError
from muster.secret_file import read_secret
from muster.section import Section
from muster.sweep_settings import NewNodesSettings, ScheduleSettings, SweepsSettings
from muster.topology_labels import TopologyLabels


@pytest.fixture
def settings_file(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a settings file and returns its path."""

    def write(text: str) -> Path:
        path = tmp_path / "muster.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


SCHEDULE = '[sweeps.schedules.nightly]\ncheck = "collective"\ncron = "0 2 * * *"\n'


def refusal(path: Path | None, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load(path, environment or {})
    return str(caught.value)


def test_defaults_need_neither_file_nor_environment():
    """A node runs with no settings at all, under its host name, and listens on loopback only."""
    settings = load(None, {})
    assert settings.fleet == "default"
    assert settings.node
    assert is_loopback(settings.http.listen)
    assert is_loopback(settings.agent.listen)
    assert not str(settings.data_dir).startswith("~")


def test_file(settings_file):
    """Values come from TOML tables."""
    settings = load(
        settings_file('fleet = "lab"\n[broker]\nurl = "mqtts://broker:8883"\n[checks.gemm]\ninterval_s = 5'), {}
    )
    assert (settings.fleet, settings.broker.url) == ("lab", "mqtts://broker:8883")
    assert settings.checks == {"gemm": CheckSettings(interval_s=5)}


@pytest.mark.parametrize("limit", ['"25%"', '"0.5%"', '"40"', "40", '"100%"'])
def test_how_many_nodes_a_scheduled_sweep_takes_at_once(settings_file, limit):
    """A number, with or without quotes, or a share; a tenth where nothing is said."""
    (given,) = load(settings_file(f"{SCHEDULE}max_parallel = {limit}"), {}).sweeps.schedules.values()
    (default,) = load(settings_file(SCHEDULE), {}).sweeps.schedules.values()
    assert (given.max_parallel, default.max_parallel) == (limit.strip('"'), "10%")


def test_environment_overrides_the_file_and_two_underscores_nest(settings_file):
    """The environment wins over the file, key by key."""
    path = settings_file('fleet = "lab"\nnode = "n1"\n[broker]\nurl = "mqtt://a"\nusername = "u"')
    environment = {"MUSTER_FLEET": "other", "MUSTER_BROKER__URL": "mqtt://b", "HOME": "/x"}
    settings = load(path, environment)
    assert (settings.fleet, settings.node) == ("other", "n1")
    assert (settings.broker.url, settings.broker.username) == ("mqtt://b", "u")


def test_environment_takes_lists_and_tables_as_json():
    """What starts with a bracket is read as JSON, and stays a string where it is none."""
    settings = load(
        None,
        {
            "MUSTER_PLUGINS__DISABLED": '["nvml"]',
            "MUSTER_CHECKS__GEMM__PARAMS": '{"size": 64}',
            "MUSTER_EXPECTED_GPUS": "8",
            "MUSTER_AGENT__LISTEN": "[::1]:8788",
        },
    )
    assert settings.plugins.disabled == ("nvml",)
    assert settings.checks["gemm"].params == {"size": 64}
    assert settings.expected_gpus == 8
    assert settings.agent.listen == "[::1]:8788"


def test_variables_that_are_not_settings_are_left_alone():
    """Options of the command line and the mark on a run's processes are no unknown settings."""
    assert load(None, {"MUSTER_CONFIG": "x", "MUSTER_URL": "y", "MUSTER_RUN": "z"}).fleet == "default"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('flet = "x"', "unknown setting 'flet'; did you mean 'fleet'?"),
        ('[broker]\nulr = "x"', "unknown setting 'broker.ulr'; did you mean 'broker.url'? (valid: broker.ca_file"),
        (
            "[checks.gemm]\ninterval = 1",
            "unknown setting 'checks.gemm.interval'; did you mean 'checks.gemm.interval_s'?",
        ),
        ('broker = "mqtt://x"', "setting 'broker': must be a table"),
        ("checks = 1", "setting 'checks': must be a table (got 1)"),
        (
            '[plugins]\ndisabled = "nvml"',
            """setting 'plugins.disabled': must be a list, for example ["a", "b"] (got 'nvml')""",
        ),
        ('expected_gpus = "many"', "setting 'expected_gpus': must be a valid integer"),
        ("expected_gpus = -1", "setting 'expected_gpus': must be greater than or equal to 0 (got -1)"),
        ("expected_gpus = 8000", "setting 'expected_gpus': must be less than or equal to 128 (got 8000)"),
        (
            'data_dir = ""',
            "setting 'data_dir': must be a path; leave it out, or unset the variable, to use the default",
        ),
        ('fleet = "a/b"', "setting 'fleet': must match pattern"),
        ('[broker]\nurl = "http://x"', "setting 'broker.url': must be mqtt://host[:port] or mqtts://host[:port]"),
        ('[broker]\nurl = "mqtt://a,b"', "setting 'broker.url': must be mqtt://host[:port] or mqtts://host[:port]"),
        ('[broker]\nurl = "mqtt://"', "setting 'broker.url': must be mqtt://host[:port] or mqtts://host[:port]"),
        ('[broker]\nurl = "mqtt://x:99999"', "setting 'broker.url': Port out of range"),
        (f'[broker]\nurl = "mqtt://{"x" * 64}"', "is neither the name nor the address of a host"),
        (f'[agent]\naddress = "{"x" * 64}"', "is neither the name nor the address of a host"),
        ("[agent]\nheartbeat_s = inf", "setting 'agent.heartbeat_s': must be a finite number"),
        ("[agent]\nheartbeat_s = 0.1", "setting 'agent.heartbeat_s': must be greater than or equal to 0.5"),
        ("[agent]\nheartbeat_s = 86400", "setting 'agent.heartbeat_s': must be less than or equal to 10"),
        ("[checks.gemm]\ninterval_s = inf", "setting 'checks.gemm.interval_s': must be a finite number"),
        ('data_dir = "~nobody-of-that-name/x"', "setting 'data_dir': has a ~ that stands for no home directory here"),
        ('[broker]\nurl = "mqtt://u@x"', "must not contain a user: set broker.username and broker.password_file"),
        ('[broker]\nlisten = "0.0.0.0:1883"', "setting 'broker.listen': the embedded broker serves this host only"),
        ('[http]\nlisten = "0.0.0.0:8787"', "which needs a token: set http.token_file"),
        ('[http]\nlisten = "8787"', "setting 'http.listen': '8787' is not host:port, for example 127.0.0.1:8080"),
        ('[agent]\nlisten = "0.0.0.0:8788"', "which needs a token: set agent.token_file"),
        ('[agent]\nlisten = "8788"', "setting 'agent.listen': '8788' is not host:port, for example 127.0.0.1:8080"),
        ('[agent]\ndevice_metrics = ["fans"]', "setting 'agent.device_metrics.0'"),
        ('[log]\nlevel = "loud"', "setting 'log.level': must be 'debug', 'info', 'warning' or 'error' (got 'loud')"),
        ("fleet =", "is not TOML: "),
        (
            '[sweeps.schedules.nightly]\ncheck = "c"\ncron = "0 2 * *"',
            "setting 'sweeps.schedules.nightly.cron': must have five fields: minute, hour,",
        ),
        ('[sweeps.schedules.nightly]\ncheck = "c"', "setting 'sweeps.schedules.nightly.cron': must be given"),
        (f'{SCHEDULE}max_parallel = "some"', "must be a number of nodes, such as 40, or a share of them, such as 25%"),
        (f'{SCHEDULE}max_parallel = "0%"', "must be a number of nodes, such as 40, or a share of them, such as 25%"),
        (f'{SCHEDULE}max_parallel = "101%"', "must be a number of nodes, such as 40, or a share of them, such as 25%"),
        (f"{SCHEDULE}max_parallel = 0.5", "must be a number of nodes, such as 40, or a share of them, such as 25%"),
        (
            f'{SCHEDULE}strategy = "pair"',
            "setting 'sweeps.schedules.nightly.strategy': must be 'single', 'pairs'",
        ),
        (f'{SCHEDULE}pairing = "rail"', "pairing = 'rail' is for strategy pairs: set strategy = 'pairs' as well"),
        (f"{SCHEDULE}jitter = 5", "did you mean 'sweeps.schedules.nightly.jitter_s'?"),
        (f"{SCHEDULE}passes = 0", "setting 'sweeps.schedules.nightly.passes': must be greater than or equal"),
        ("[sweeps.new_nodes]", "setting 'sweeps.new_nodes.check': must be given"),
        ("[sweeps.new_nodes]\npartner = 1", "did you mean 'sweeps.new_nodes.partners'?"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(settings_file, text, message):
    """Each message names the key, what was wrong and what would be right."""
    assert message in refusal(settings_file(text))


def test_a_tilde_stands_for_the_home_directory_in_every_path(settings_file, monkeypatch):
    """As people write it in a shell."""
    monkeypatch.setenv("HOME", "/home/me")
    settings = load(settings_file('data_dir = "~/data"\n[http]\ntoken_file = "~/token"'), {})
    assert (settings.data_dir, settings.http.token_file) == (Path("/home/me/data"), Path("/home/me/token"))


def test_all_that_is_wrong_is_listed(settings_file):
    """Two mistakes need only one attempt."""
    lines = refusal(settings_file('flet = "x"\nexpected_gpus = -1')).splitlines()
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"MUSTER_FLET": "x"}, "unknown setting 'flet'; did you mean 'fleet'?"),
        ({"MUSTER_BROKER__ULR": "x"}, "unknown setting 'broker.ulr'"),
        (
            {"MUSTER_FLEET": "x", "MUSTER_FLEET__NAME": "y"},
            "MUSTER_FLEET__NAME: 'fleet' is a single value, not a table",
        ),
        ({"MUSTER_PLUGINS__DISABLED": "nvml"}, "must be a list"),
    ],
)
def test_what_is_wrong_in_the_environment_is_named(environment, message):
    """Variables are held to the same rules as the file."""
    assert message in refusal(None, environment)


def test_a_missing_file_is_named(tmp_path):
    """A settings file that is not there is an error, not the defaults."""
    assert refusal(tmp_path / "none.toml") == f"settings: cannot read {tmp_path}/none.toml: No such file or directory"


@pytest.mark.parametrize(
    ("content", "line"),
    [(b"\x7fELF\x00\xff", 1), ('fleet = "a"\n# für alle\n'.encode("latin-1"), 2), ("fleet = 1\n".encode("utf-16"), 1)],
)
def test_a_file_that_is_not_text_is_named_with_the_line(tmp_path, content, line):
    """A binary file, and text that an editor has saved in another encoding; the message says what would be right."""
    path = tmp_path / "muster.toml"
    path.write_bytes(content)
    assert refusal(path) == f"settings: {path}: line {line} is not text in UTF-8; save the file as UTF-8"


def test_the_api_may_leave_loopback_with_a_token():
    """With a token file, any address is accepted."""
    assert HttpSettings(listen="0.0.0.0:8787", token_file=Path("/token")).listen == "0.0.0.0:8787"


class Rail(Section):
    """A table in a list."""

    speed: int = 0


class Colours(Section):
    """A plugin's own section."""

    front: str = "red"
    rails: list[Rail] = Field(default=[])


def config(**sections: object) -> Config:
    return Config(Settings(plugins=PluginsSettings.model_validate(sections)))


def test_a_plugin_reads_its_own_section():
    """A section comes typed, with defaults, and the same each time."""
    settings = config(paint={"front": "blue"})
    assert settings.plugin("paint", Colours) == Colours(front="blue")
    assert settings.plugin("paint", Colours) is settings.plugin("paint", Colours)
    assert config().plugin("paint", Colours) == Colours()


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"fornt": 1}, "unknown setting 'plugins.paint.fornt'; did you mean 'plugins.paint.front'?"),
        (
            {"rails": [{"sped": 1}]},
            "unknown setting 'plugins.paint.rails.0.sped'; did you mean 'plugins.paint.rails.0.speed'?",
        ),
        ({"rails": "x"}, "setting 'plugins.paint.rails': must be a list"),
        ("red", "setting 'plugins.paint': must be a table (got 'red')"),
    ],
)
def test_what_is_wrong_in_a_plugins_section_is_named(section, message):
    """A plugin's mistakes read like muster's own."""
    with pytest.raises(SettingsError) as caught:
        config(paint=section).plugin("paint", Colours)
    assert message in str(caught.value)


def test_sections_that_nobody_asked_for_are_known():
    """Tables that no plugin reads are listed."""
    settings = config(paint={}, other={})
    settings.plugin("paint", Colours)
    assert settings.unclaimed() == ["other"]


def test_secrets_come_from_files(tmp_path):
    """The final newline that editors add is not part of a secret, and a missing file names its setting."""
    path = tmp_path / "password"
    path.write_text("hush\n")
    assert read_secret(path, "broker.password_file") == "hush"
    with pytest.raises(SettingsError, match=r"broker\.password_file: cannot read .*none"):
        read_secret(tmp_path / "none", "broker.password_file")


@pytest.mark.parametrize(
    ("address", "pair"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:1", ("::1", 1)), ("localhost:0", ("localhost", 0))],
)
def test_addresses(address, pair):
    """host:port, with IPv6 in brackets."""
    assert split_address(address) == pair
    assert is_loopback(address)


@cases(
    "address",
    ["::1:80", "[::1:80", "::1]:80", "[localhost]:80", "127.0.0.1:\u00b2", "127.0.0.1:\u0663", "x:65536", ":1"],
)
def test_what_is_no_address(address):
    """An IPv6 address without brackets could end with a port or not, and a port is written in ASCII."""
    with pytest.raises(ValueError, match="is not host:port, for example"):
        split_address(address)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    """Some editors write one at the beginning of every file."""
    settings, secret = tmp_path / "muster.toml", tmp_path / "token"
    settings.write_text('node = "n1"', encoding="utf-8-sig")
    secret.write_text("hush", encoding="utf-8-sig")
    assert load(settings, {}).node == "n1"
    assert read_secret(secret, "http.token_file") == "hush"


@cases(
    "model",
    [
        Settings,
        BrokerSettings,
        HttpSettings,
        StoreSettings,
        AgentSettings,
        CheckSettings,
        SweepsSettings,
        ScheduleSettings,
        NewNodesSettings,
        LogSettings,
        TopologyLabels,
    ],
)
def test_every_setting_is_described(model):
    """The reference is generated from the descriptions."""
    assert [name for name, field in model.model_fields.items() if not field.description] == []
