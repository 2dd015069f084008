"""What the check `host` makes of services and of the container runtime."""

import socket
from pathlib import Path

import pytest
from tests.plugins.checks.host.looking import GPUS, NONE, judged, write

from muster_plugins.checks.host import services as host_services
from muster_plugins.checks.host.look import CannotDetermine, NotApplicable

SHOW = """\
LoadState={fm_load}
ActiveState={fm_active}
UnitFileState={fm_enabled}

LoadState=not-found
ActiveState=inactive
UnitFileState=
"""


@pytest.fixture
def systemctl(live, tmp_path):
    """A stand-in that answers for two units, and writes down what it was asked; an NVSwitch is on the bus."""
    switch = write(tmp_path / "bus/pci/devices/0000:c5:00.0/class", "0x068000\n").parent
    write(switch / "vendor", "0x10de\n")

    def install(output: str, exit_code: int = 0) -> Path:
        write(tmp_path / "output", output)
        program = write(
            tmp_path / "systemctl",
            f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/asked\ncat {tmp_path}/output\nexit {exit_code}\n',
        )
        program.chmod(0o755)
        return program

    return install


@pytest.mark.parametrize(
    ("load", "active", "enabled", "wanted", "expected"),
    [
        ("loaded", "active", "enabled", True, {}),
        ("loaded", "active", "enabled", False, {}),
        ("loaded", "failed", "enabled", False, {"host.service_down": "WARNING"}),
        ("loaded", "inactive", "enabled", False, {"host.service_down": "WARNING"}),
        ("loaded", "inactive", "disabled", False, {}),
        ("not-found", "inactive", "", False, {}),
        ("not-found", "inactive", "", True, {"host.service_down": "ERROR"}),
        ("loaded", "inactive", "disabled", True, {"host.service_down": "ERROR"}),
        ("loaded", "activating", "enabled", True, {"host.service_down": "ERROR"}),
    ],
)
def test_services(tmp_path, systemctl, *, load, active, enabled, wanted, expected):
    """What the settings name must be active; Fabric Manager and IMEX only where they are installed and enabled."""
    program = systemctl(SHOW.format(fm_load=load, fm_active=active, fm_enabled=enabled))
    units = ["nvidia-fabricmanager.service"] if wanted else []
    assert judged(host_services, host_services.units(program, units, tmp_path, GPUS)) == expected
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[-3:] == ["--", "nvidia-fabricmanager.service", "nvidia-imex.service"]


def test_fabric_manager_has_nothing_to_do_without_nvswitches(tmp_path, systemctl):
    """An image for many machine types starts it everywhere; services in the settings are still required."""
    program = systemctl("LoadState=loaded\nActiveState=inactive\nUnitFileState=disabled\n")
    bare = tmp_path / "bare"
    assert judged(host_services, host_services.units(program, [], bare, GPUS)) == {}
    assert (tmp_path / "asked").read_text().splitlines()[-2:] == ["--", host_services.IMEX]


def test_a_container_without_systemd_is_none_of_its_machines(tmp_path, systemctl):
    """The program may be installed in the container. The state of required services is then unknown."""
    program = systemctl("")
    said = "System has not been booted with systemd as init system (PID 1). Can't operate."
    program.write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')
    with pytest.raises(NotApplicable, match="not been booted"):
        host_services.units(program, [], tmp_path, GPUS)
    with pytest.raises(CannotDetermine, match="not been booted"):
        host_services.units(program, ["chronyd.service"], tmp_path, GPUS)


def test_services_are_looked_at_where_gpus_are_or_the_settings_name_them(tmp_path, systemctl):
    """And where systemd is; a container without it is no fault, unless something is expected of it."""
    program = systemctl(SHOW)
    with pytest.raises(NotApplicable, match="no GPU"):
        host_services.units(program, [], tmp_path, NONE)
    with pytest.raises(NotApplicable, match="not installed"):
        host_services.units(tmp_path / "none", [], tmp_path, GPUS)
    with pytest.raises(CannotDetermine, match="not installed"):
        host_services.units(tmp_path / "none", ["chronyd.service"], tmp_path, NONE)


@pytest.mark.parametrize(("output", "exit_code"), [("", 0), ("garbage\n", 0), ("a=b\n", 0), (SHOW, 1)])
def test_services_that_cannot_be_told(tmp_path, systemctl, output, exit_code):
    """No bus, another program of the name, half an answer."""
    with pytest.raises(CannotDetermine, match="of 2 units"):
        host_services.units(systemctl(output, exit_code), [], tmp_path, GPUS)


def test_a_systemctl_that_hangs_is_ended(tmp_path, systemctl, monkeypatch):
    """A manager that does not answer is unknown."""
    monkeypatch.setattr(host_services, "ANSWER_S", 0.2)
    program = systemctl(SHOW)
    program.write_text("#!/bin/sh\nsleep 600\n")
    with pytest.raises(CannotDetermine, match=r"did not finish within 0\.2 s"):
        host_services.units(program, [], tmp_path, GPUS)


@pytest.fixture
def runtime(live, tmp_path):
    """The socket of a container runtime that listens."""
    path = tmp_path / "containerd.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield path, listener


def test_a_runtime_that_accepts_is_well(runtime):
    """Whether it was named or only found."""
    path, _ = runtime
    assert judged(host_services, host_services.runtimes([path], [], NONE)) == {}
    assert judged(host_services, host_services.runtimes([], [path, path.with_name("docker.sock")], NONE)) == {}


def test_a_runtime_that_is_gone_is_found(runtime):
    """Its socket outlives it: a fault if the settings name it, else a warning."""
    path, listener = runtime
    listener.close()
    assert judged(host_services, host_services.runtimes([path], [path], NONE)) == {"host.runtime_down": "ERROR"}
    assert judged(host_services, host_services.runtimes([], [path], NONE)) == {"host.runtime_down": "WARNING"}


@pytest.mark.usefixtures("live")
def test_a_runtime_that_is_named_must_be_there(tmp_path):
    """A runtime that the settings do not name may be missing, and so may all of them."""
    path = tmp_path / "containerd.sock"
    assert judged(host_services, host_services.runtimes([path], [], NONE)) == {"host.runtime_down": "ERROR"}
    with pytest.raises(NotApplicable):
        host_services.runtimes([], [path], NONE)


@pytest.mark.usefixtures("live")
def test_a_runtime_that_does_not_accept_any_more_is_found(tmp_path, monkeypatch):
    """Its queue is full: connecting would wait for ever."""
    monkeypatch.setattr(host_services, "ANSWER_S", 0.2)
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(path))
        listener.listen(0)
        first.connect(str(path))
        assert judged(host_services, host_services.runtimes([path], [], NONE)) == {"host.runtime_down": "ERROR"}


@pytest.mark.parametrize(("wanted", "severity"), [(True, "UNKNOWN"), (False, "SKIPPED")])
def test_a_runtime_that_this_user_may_not_ask(runtime, monkeypatch, wanted, severity):
    """An agent that is not root cannot tell; it says so."""
    path, _ = runtime

    class Refusing(socket.socket):
        def connect(self, address):
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "socket", Refusing)
    measurement = host_services.runtimes([path] if wanted else [], [path], NONE)
    assert judged(host_services, measurement) == {"host.runtime_refused": severity}
