"""What `muster init` writes works: a fleet runs from it, and Kubernetes takes its manifests."""

import base64
import contextlib
import json
import os
import pty
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from benchmarks.free_ports import free_address, free_port
from generator.kustomize import build
from tests.faults.parts import Agent, Part
from tests.muster_process import run_muster
from tests.waiting import wait_for

from muster.config import load

NODES = ("gpu-01", "gpu-02")
FLEET = ("systemd", "--host", "localhost", "--nodes", "gpu-[01-02]")
SIMULATED = {
    "plugins": {"simulated": {"enabled": True, "devices": 1}, "disabled": ["nvml", "host", "fabric", "kernel_log"]},
    "checks": {check: {"enabled": False} for check in ("gemm", "memory", "training", "storage")},
}

pytestmark = pytest.mark.usefixtures("live")


def init(directory, *arguments):
    return run_muster("init", *arguments, "--directory", str(directory))


def contents(directory):
    """Every file with its content, but for what the authority notes down beside its key and certificate."""
    notes = {*directory.glob("authority/**/*")} - {*directory.glob("authority/ca.*")}
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path not in notes}


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """The directory of a fleet of hosts with two nodes."""
    directory: Path = tmp_path_factory.mktemp("fleet") / "muster-config"
    done = init(directory, *FLEET)
    assert done.returncode == 0, done.stderr
    return directory


# On hosts


DEBIAN = "pid_file {directory}/mosquitto.pid\npersistence true\npersistence_location {directory}/\n"
"""The settings of Debian's Mosquitto, to which ours are added."""


@contextlib.contextmanager
def served(written, new_mosquitto, directory):
    """The port of the written listener, in a Mosquitto as Debian starts it, with the written settings in conf.d."""
    port = free_port()
    (directory / "conf.d").mkdir()
    shutil.copytree(written / "broker", directory / "muster")
    text = (written / "broker" / "muster.conf").read_text()
    assert text.count("/etc/mosquitto/muster") == 6
    text = text.replace("listener 8883\n", f"listener {port} 127.0.0.1\n").replace(
        "/etc/mosquitto/muster", str(directory / "muster")
    )
    (directory / "conf.d" / "muster.conf").write_text(text)
    with new_mosquitto(f"{DEBIAN.format(directory=directory)}include_dir {directory}/conf.d"):
        yield port


def settings_on_host(files, port, directory) -> Path:
    """A copy of a host's files, whose settings have the paths and the port that this machine has for them."""
    shutil.copytree(files, directory)
    file: Path = directory / "muster.toml"
    text = file.read_text().replace("/etc/muster", str(directory)).replace(":8883", f":{port}")
    file.write_text(text.replace("/var/lib/muster", str(directory / "data")))
    return file


@pytest.fixture(scope="module")
def broker(written, new_mosquitto, tmp_path_factory):
    """The port of the fleet's broker."""
    with served(written, new_mosquitto, tmp_path_factory.mktemp("broker")) as port:
        yield port


@pytest.fixture(scope="module")
def installed(written, broker, tmp_path_factory):
    """Gives the settings file of a host."""
    return lambda place: settings_on_host(written / place, broker, tmp_path_factory.mktemp("etc") / "muster")


def examined(role, file, **settings):
    """The verdict of each line of `muster doctor`; whether the clock is right is the machine's matter."""
    env = {**os.environ, "MUSTER_CONFIG": str(file), **settings}
    done = run_muster("doctor", role, "--json", env=env)
    assert done.stdout, done.stderr
    found = {item["check"]: item for item in json.loads(done.stdout)}
    del found["clock"]
    return {check: item["verdict"] for check, item in found.items()}, found


def agent_of(name, file, tmp_path, **settings):
    env = {"MUSTER_CONFIG": str(file), "MUSTER_AGENT__LISTEN": "127.0.0.1:0", **settings}
    return Agent("agent", tmp_path / f"{name}.log", SIMULATED, env)


@pytest.fixture
def coordinator(installed, tmp_path):
    """The coordinator from the written files, and its address."""
    address = free_address()
    env = {"MUSTER_CONFIG": str(installed("coordinator")), "MUSTER_HTTP__LISTEN": address}
    part = Part("coordinator", tmp_path / "coordinator.log", {}, env)
    part.start()
    part.logged("coordinator_ready")
    yield f"http://{address}"
    part.stop()


def test_a_fleet_runs_from_the_files(written, installed, coordinator, tmp_path):
    """The reader sees both nodes. A node that shows another node's certificate is not among them."""
    agents = [agent_of(node, installed(f"nodes/{node}"), tmp_path) for node in NODES]
    stranger = agent_of("stranger", installed(f"nodes/{NODES[1]}"), tmp_path, MUSTER_NODE="gpu-03")
    token = str(written / "coordinator" / "read-token")

    def seen():
        done = run_muster("node", "list", "--json", "--url", coordinator, "--token-file", token)
        assert done.returncode == 0, done.stderr
        return {item["name"]: item["health"] for item in json.loads(done.stdout)["items"]}

    try:
        stranger.start()
        stranger.logged("broker_connected")
        stranger.stop()
        for agent in agents:
            agent.start()
            agent.wait_until_ready()
        wait_for(lambda: seen() == dict.fromkeys(NODES, "HEALTHY"), "both nodes")
        refused = run_muster("node", "forget", NODES[0], "--reason", "x", "--url", coordinator, "--token-file", token)
        assert refused.returncode != 0
        assert "you may read and not change anything" in refused.stderr
    finally:
        for agent in (stranger, *agents):
            if agent.runs:
                agent.kill()


def test_the_broker_keeps_nodes_apart(installed):
    """With its own certificate a node has the rights that it needs; with another node's it has none of them."""
    coordinator, own, other = (installed(place).parent for place in ("coordinator", *(f"nodes/{it}" for it in NODES)))
    for certificate, has_rights in ((own, True), (other, False)):
        done = run_muster(
            "broker", "check", "--config", str(coordinator / "muster.toml"), "--node", NODES[0],
            "--node-cert", str(certificate / "tls.crt"), "--node-key", str(certificate / "tls.key"), timeout=150,
        )  # fmt: skip
        # A busy machine may make it WARN about the latency.
        assert done.returncode in ((0, 1) if has_rights else (2,)), done.stdout + done.stderr


def test_doctor_finds_nothing_to_mend(installed):
    """The broker lets both in and certificates are valid; only the daemons do not run yet."""
    settings = {"MUSTER_HTTP__LISTEN": free_address(), "MUSTER_STORE__MAX_GB": "0.1"}
    verdicts, found = examined("coordinator", installed("coordinator"), **settings)
    assert verdicts.pop("coordinator") == "WARN"
    assert set(verdicts.values()) == {"PASS"}, found
    plugins = json.dumps(SIMULATED["plugins"])
    settings = {"MUSTER_PLUGINS": plugins, "MUSTER_AGENT__LISTEN": free_address()}
    verdicts, found = examined("agent", installed(f"nodes/{NODES[0]}"), **settings)
    assert verdicts.pop("agent") == "WARN"
    assert set(verdicts.values()) == {"PASS"}, found


def test_doctor_names_the_certificate_of_another_node(installed):
    """As after files of two nodes were mixed up; the settings say who this node is."""
    env = {**os.environ, "MUSTER_CONFIG": str(installed(f"nodes/{NODES[1]}")), "MUSTER_NODE": NODES[0]}
    done = run_muster("doctor", "agent", "--json", env=env)
    wrong = [item["detail"] for item in json.loads(done.stdout) if item["verdict"] == "FAIL"]
    assert any(f": is for the node '{NODES[1]}', and this node is '{NODES[0]}'" in text for text in wrong), wrong


def test_keys_and_tokens_are_for_the_owner(written):
    """The directory is closed to others, and what is secret stays so when it is copied. None is printed."""
    assert stat.S_IMODE(written.stat().st_mode) == 0o700
    secret = [path for path in written.rglob("*") if path.suffix == ".key" or path.name.endswith("-token")]
    assert len(secret) == 1 + 2 + len(NODES) + 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in secret} == {0o600}
    assert len({path.read_bytes() for path in secret}) == len(secret)


def test_certificates_are_what_strict_clients_take(written):
    """As Python 3.13 and newer, which want more of them; each has its own name."""
    authority = written / "authority" / "ca.crt"
    for place, name in (("broker", "broker"), ("coordinator", "coordinator"), ("nodes/gpu-01", "gpu-01")):
        certificate = written / place / "tls.crt"
        verify = ["openssl", "verify", "-x509_strict", "-CAfile", authority, certificate]
        assert subprocess.run(verify, capture_output=True, timeout=60, check=False).returncode == 0
        subject = ["openssl", "x509", "-in", certificate, "-noout", "-subject", "-nameopt", "multiline"]
        text = subprocess.run(subject, capture_output=True, text=True, timeout=60, check=True).stdout
        assert text.rpartition("= ")[2].strip() == name


# A second call


def test_a_second_call_adds_nodes_and_nothing_else(tmp_path):
    """Also where an operator has changed a file meanwhile, and after an interrupted call."""
    directory = tmp_path / "c"
    assert init(directory, *FLEET).returncode == 0
    (directory / "coordinator" / "muster.toml").write_text("# mine\n")
    (directory / "nodes" / "gpu-02" / "tls.crt").unlink()
    before = contents(directory)
    done = init(directory, "--nodes", "gpu-[01-03]")
    assert (done.returncode, done.stderr) == (0, "")
    after = contents(directory)
    new = {path.relative_to(directory).parts[:2] for path in after if after[path] != before.get(path)}
    assert new == {("nodes", "gpu-02"), ("nodes", "gpu-03"), ("ansible", "inventory")}
    assert "has all of this already" in init(directory).stdout
    assert contents(directory) == after


def way_in(files, port, directory):
    """What `muster doctor agent` says about the broker on a host with these files."""
    file = settings_on_host(files, port, directory)
    return examined("agent", file, MUSTER_AGENT__LISTEN=free_address())[1]["broker"]


def test_a_node_that_has_left_is_refused(new_mosquitto, tmp_path):
    """By the broker, with all certificates that it ever had. It may come back with a new one."""
    directory = tmp_path / "c"
    assert init(directory, *FLEET).returncode == 0
    gone = tmp_path / "gone"
    shutil.copytree(directory / "nodes" / "gpu-02", gone)
    (directory / "nodes" / "gpu-02" / "tls.crt").unlink()
    assert init(directory).returncode == 0
    renewed = tmp_path / "renewed"
    shutil.copytree(directory / "nodes" / "gpu-02", renewed)
    (tmp_path / "before").mkdir()
    with served(directory, new_mosquitto, tmp_path / "before") as port:
        assert way_in(gone, port, tmp_path / "1")["verdict"] == "PASS"
    done = init(directory, "--revoke", "gpu-02")
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in directory.glob("nodes/*")] == ["gpu-01"]
    assert "gpu-02" not in (directory / "ansible" / "inventory" / "hosts").read_text()
    assert init(directory, "--nodes", "gpu-02").returncode == 0
    (tmp_path / "after").mkdir()
    with served(directory, new_mosquitto, tmp_path / "after") as port:
        for number, old in enumerate((gone, renewed), 2):
            answer = way_in(old, port, tmp_path / str(number))
            assert (answer["verdict"], "certificate revoked" in answer["detail"]) == ("FAIL", True), answer
        for node in NODES:
            assert way_in(directory / "nodes" / node, port, tmp_path / node)["verdict"] == "PASS"


def forget_what_was_issued(directory):
    """Leaves the authority as versions left it that could not revoke."""
    shutil.rmtree(directory / "authority" / "issued")
    (directory / "authority" / "index.txt").unlink()


def test_certificates_that_the_authority_has_not_noted_are_revoked(new_mosquitto, tmp_path):
    """The present one by the name of its node, any other by its file; a second time changes nothing."""
    directory = tmp_path / "c"
    assert init(directory, *FLEET).returncode == 0
    stolen, gone = tmp_path / "stolen", tmp_path / "gone"
    shutil.copytree(directory / "nodes" / "gpu-01", stolen)
    shutil.copytree(directory / "nodes" / "gpu-02", gone)
    forget_what_was_issued(directory)
    (directory / "nodes" / "gpu-01" / "tls.crt").unlink()
    for _ in range(2):
        done = init(directory, "--revoke-certificate", str(stolen / "tls.crt"))
        assert (done.returncode, done.stderr) == (0, "")
    done = init(directory, "--revoke", "gpu-02")
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "after").mkdir()
    with served(directory, new_mosquitto, tmp_path / "after") as port:
        for number, old in enumerate((stolen, gone)):
            answer = way_in(old, port, tmp_path / str(number))
            assert (answer["verdict"], "certificate revoked" in answer["detail"]) == ("FAIL", True), answer
        assert way_in(directory / "nodes" / "gpu-01", port, tmp_path / "renewed")["verdict"] == "PASS"


@pytest.mark.parametrize(
    ("file", "problem"),
    [("nobody.crt", "is not a file"), ("others/authority/ca.crt", "has no certificate of"), ("c/README.md", "has no")],
)
def test_only_a_certificate_of_the_authority_is_revoked(tmp_path, file, problem):
    """Anything else is refused, and nothing changes."""
    directory = tmp_path / "c"
    for each in (directory, tmp_path / "others"):
        assert init(each, *FLEET).returncode == 0
    before = contents(directory)
    done = init(directory, "--revoke-certificate", str(tmp_path / file))
    assert (done.returncode, contents(directory)) == (64, before)
    assert problem in done.stderr


def test_only_a_node_that_had_a_certificate_is_revoked(tmp_path):
    """And only if the broker's settings have the list. A wrong --directory does not become a new fleet."""
    directory = tmp_path / "c"
    wrong = init(directory, *FLEET, "--revoke", "gpu-02")
    assert (wrong.returncode, directory.exists()) == (64, False)
    assert "has no fleet yet" in wrong.stderr
    assert init(directory, *FLEET).returncode == 0
    before = contents(directory)
    unknown = init(directory, "--revoke", "gpu-03")
    assert (unknown.returncode, contents(directory)) == (64, before)
    assert "'gpu-03' has no certificate in" in unknown.stderr
    settings = directory / "broker" / "muster.conf"
    settings.write_text(settings.read_text().replace("crlfile ", "#"))
    before = contents(directory)
    unread = init(directory, "--revoke", "gpu-02")
    assert (unread.returncode, contents(directory)) == (64, before)
    assert "write it again with --overwrite" in unread.stderr
    assert init(directory, "--revoke", "gpu-02", "--overwrite").returncode == 0


def test_other_options_need_overwrite(tmp_path):
    """It writes the settings and the broker's certificate again, and no key, token or certificate of a client."""
    directory = tmp_path / "c"
    assert init(directory, *FLEET).returncode == 0
    before = contents(directory)
    done = init(directory, "--host", "hub.example")
    assert (done.returncode, contents(directory)) == (64, before)
    assert "--overwrite" in done.stderr
    assert init(directory, "--host", "hub.example", "--overwrite").returncode == 0
    after = contents(directory)
    changed = {str(path.relative_to(directory)) for path in after if after[path] != before[path]}
    assert changed == {
        "README.md", "answers.toml", "coordinator/muster.toml", "nodes/gpu-01/muster.toml", "nodes/gpu-02/muster.toml",
        "broker/muster.conf", "broker/tls.crt", "broker/tls.key", "ansible/inventory/hosts",
    }  # fmt: skip
    assert "written for systemd" in init(directory, "slurm").stderr


def test_a_directory_of_others_is_left_alone(tmp_path):
    """It may be a home directory."""
    (tmp_path / "notes").write_text("mine")
    done = init(tmp_path, *FLEET)
    assert (done.returncode, done.stdout) == (64, "")
    assert f"--directory: {tmp_path} is there and not from `muster init`; name another directory" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    """In one line."""
    done = init("/proc/muster", "machine")
    assert done.returncode == 64
    assert done.stderr.startswith("muster: --directory: cannot write /proc/muster: ")


def test_a_disk_that_is_full_is_named(tmp_path):
    """The error of such a write names no file."""
    command = ["prlimit", "--fsize=100", sys.executable, "-m", "muster", "init", "machine", "--directory", "config"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 64
    assert done.stderr.startswith("muster: --directory: cannot write config: ")


def test_openssl_is_named_where_it_is_missing(tmp_path):
    """Nothing else that is there can make certificates."""
    env = {**os.environ, "PATH": str(tmp_path)}
    done = run_muster("init", *FLEET, "--directory", str(tmp_path / "c"), env=env)
    assert (done.returncode, "openssl is not installed here; install it" in done.stderr) == (69, True)


def test_a_kind_is_needed_where_nobody_can_be_asked(tmp_path):
    """A script must say it."""
    done = init(tmp_path / "c")
    assert done.returncode == 64
    assert "KIND: missing; give one of machine, systemd, slurm, kubernetes" in done.stderr
    assert not (tmp_path / "c").exists()


# At a terminal


def answered(directory, *lines):
    """What is on the terminal and the exit code when a person answers with these lines."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "muster", "init", "--directory", str(directory)])
    os.write(terminal, "".join(f"{line}\n" for line in lines).encode())
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:
            break
    os.close(terminal)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_person_is_asked(tmp_path):
    """An empty line takes the default; wrong answers are refused as wrong options are."""
    shown, code = answered(tmp_path / "c", "slurm", "", "hub.example", "8", "gpu-[1-2]")
    assert code == 0, shown
    assert "Name of the fleet [default]: " in shown
    settings = load(tmp_path / "c" / "nodes" / "gpu-2" / "muster.toml", {})
    assert (settings.fleet, settings.node, settings.expected_gpus) == ("default", "gpu-2", 8)
    assert settings.broker.url == "mqtts://hub.example:8883"
    shown, code = answered(tmp_path / "d", "", "a/b", "", "", "")
    assert (code, "--fleet: 'a/b' cannot name a fleet" in shown) == (64, True)


# Other kinds


def test_slurm(tmp_path, muster):
    """Agents leave when a job comes, the coordinator has its actor, and Slurm's own scripts can be run."""
    assert init(tmp_path / "c", "slurm", "--host", "h", "--nodes", "n1").returncode == 0
    agent, coordinator = (load(tmp_path / "c" / it / "muster.toml", {}) for it in ("nodes/n1", "coordinator"))
    assert agent.plugins.sections["slurm"] == {"enabled": True}
    assert coordinator.plugins.sections["slurm"] == {"actor": {"enabled": True}}
    modes = {path.name: os.access(path, os.X_OK) for path in (tmp_path / "c" / "slurm").iterdir()}
    assert modes == dict.fromkeys(("node-check", "health-check", "acceptance.sbatch", "preflight.sbatch"), True)
    assert "AdminLevel=Admin" in (tmp_path / "c" / "README.md").read_text()


def test_one_machine(tmp_path):
    """A coordinator with a broker of its own and an agent run from the one file."""
    assert init(tmp_path / "c", "machine", "--expect-gpus", "1").returncode == 0
    file = tmp_path / "c" / "muster.toml"
    address = free_address()
    env = {
        "MUSTER_CONFIG": str(file), "MUSTER_DATA_DIR": str(tmp_path / "data"), "MUSTER_BROKER__LISTEN": free_address(),
        "MUSTER_HTTP__LISTEN": address, "MUSTER_AGENT__LISTEN": "127.0.0.1:0", "MUSTER_NODE": "this",
    }  # fmt: skip
    coordinator = Part("coordinator", tmp_path / "coordinator.log", {}, env)
    agent = Agent("agent", tmp_path / "agent.log", SIMULATED, env)
    coordinator.start()
    try:
        coordinator.logged("coordinator_ready")
        agent.start()

        def healthy():
            done = run_muster("node", "list", "--json", "--url", f"http://{address}")
            return [item["health"] for item in json.loads(done.stdout)["items"]] == ["HEALTHY"]

        wait_for(healthy, "the machine")
    finally:
        for part in (agent, coordinator):
            part.kill()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The directory of a fleet in Kubernetes with a name of its own."""
    directory = tmp_path_factory.mktemp("cluster") / "c"
    done = init(directory, "kubernetes", "--registry", "registry.internal", "--fleet", "lab", "--expect-gpus", "8")
    assert done.returncode == 0, done.stderr
    return directory


def test_the_overlay_is_complete(cluster):
    """As `kubectl kustomize` builds it: images, fleet, access list, and all Secrets that the pods name."""
    mine = cluster / "daemonset" / "overlays" / "mine"
    made = build(yaml.safe_load((mine / "kustomization.yaml").read_text()), mine)
    pods = [
        document["spec"]["template"]["spec"]
        for (kind, _), document in made.items()
        if kind in ("DaemonSet", "Deployment")
    ]
    images = {container["image"] for pod in pods for container in (*pod.get("initContainers", ()), *pod["containers"])}
    assert {image.partition("/")[0] for image in images} == {"registry.internal", "eclipse-mosquitto:2.0.22"}
    assert made["ConfigMap", "muster-environment"]["data"]["MUSTER_FLEET"] == "lab"
    assert made["ConfigMap", "muster-environment"]["data"]["MUSTER_EXPECTED_GPUS"] == "8"
    assert (
        "user coordinator\ntopic readwrite muster/v1/lab/#"
        in made["ConfigMap", "muster-broker"]["data"]["mosquitto.acl"]
    )
    named = {volume["secret"]["secretName"] for pod in pods for volume in pod["volumes"] if "secret" in volume}
    secrets = {document["metadata"]["name"] for document in yaml.safe_load_all((cluster / "secrets.yaml").read_text())}
    assert named <= secrets
    assert stat.S_IMODE((cluster / "secrets.yaml").stat().st_mode) == 0o600
    assert stat.S_IMODE((cluster / "api-token").stat().st_mode) == 0o600
    assert len((cluster / "api-token").read_text().strip()) == 64


def test_the_token_is_that_of_the_secrets(cluster):
    """Also where an interrupted call has left one without the other."""
    (cluster / "secrets.yaml").unlink()
    assert init(cluster).returncode == 0
    secrets = {it["metadata"]["name"]: it for it in yaml.safe_load_all((cluster / "secrets.yaml").read_text())}
    token = base64.b64decode(secrets["muster-token"]["data"]["token"]).decode()
    assert (cluster / "api-token").read_text() == token


def test_kustomize_takes_the_overlay(cluster):
    """The real one, where it is installed, prints the same objects."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl here; the test above builds the overlay without it")
    mine = cluster / "daemonset" / "overlays" / "mine"
    done = subprocess.run([kubectl, "kustomize", mine], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    printed = {
        (it["kind"], it["metadata"]["name"]) for it in yaml.safe_load_all(done.stdout) if it["kind"] != "ConfigMap"
    }
    made = build(yaml.safe_load((mine / "kustomization.yaml").read_text()), mine)
    assert printed == {key for key in made if key[0] != "ConfigMap"}


@pytest.mark.parametrize("kind", ["systemd", "slurm", "machine", "kubernetes"])
def test_the_readme_names_files_that_are_there(tmp_path, kind):
    """Every path below the directory that its commands use."""
    options = {"kubernetes": ("--registry", "r"), "machine": ()}.get(kind, ("--host", "h", "--nodes", "NODE"))
    assert init(tmp_path / "c", kind, *options).returncode == 0
    text = (tmp_path / "c" / "README.md").read_text()
    assert "$" not in text
    words = {word for block in text.split("```sh")[1:] for word in block.partition("```")[0].split()}
    folders = {path.name for path in (tmp_path / "c").iterdir() if path.is_dir()}
    named = {
        word
        for word in words
        if word.partition("/")[0] in folders and "/" in word and not word.startswith("daemonset/muster")
    }
    assert named
    assert [word for word in named if not list((tmp_path / "c").glob(word))] == []
