"""Measures for the tests, in processes of their own: one request a line, one answer a line, as JSON.

This program has imported everything. It forks a child for each message on its socket, which brings the variables that
the child's environment has beside those of this program, and the connection over which the child is asked.

A request names a check, or `inventory` or `probe`, and for each node that takes part its settings and, in `ranks`, how
many ranks it brings if not one. A check runs as an agent would run it: found by entry point, prepared by the plugins,
measured and judged by shipped references. Resident checks run in the child, each rank of the others in a fork of it.
"""

import json
import os
import resource
import socket
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from muster import Config, Device, Inventory, Rendezvous, Scope, Skip
from muster.config import Settings
from muster.plugins import Plugins, collect_checks, load
from muster.references import applicable, shipped


@dataclass(frozen=True)
class BareContext:
    """A run's surroundings without an agent: nobody to wait for, nobody to tell."""

    node: str
    devices: tuple[Device, ...]
    expected_gpus: int | None
    scratch: Path
    machine_type: str | None
    meeting: Rendezvous
    timeout_s: float = 60.0

    def progress(self, text: str) -> None:
        pass

    def rendezvous(self) -> Rendezvous:
        return self.meeting


@lru_cache(maxsize=1)
def loaded(nodes: str) -> list[Plugins]:
    """The plugins of these nodes, loaded once for a series of requests about the same, as an agent loads them."""
    return [load(Config(Settings.model_validate(settings))) for settings in json.loads(nodes)]


def answer(request: dict[str, Any]) -> Any:
    nodes = loaded(json.dumps(request.get("nodes", [{}])))
    if request["do"] == "inventory":
        return inventory(nodes[0]).model_dump(mode="json")
    if request["do"] == "probe":
        probes = [probe for found in nodes[0].contribute("muster_idle_probes") for probe in found.value or ()]
        return {probe.name: probe.probe(frozenset(request["own"])) for probe in probes}
    check = collect_checks(nodes[0])[request["do"]]
    counts = request.get("ranks") or [1] * len(nodes)
    ranks = [(node, local) for node, count in zip(nodes, counts, strict=True) for local in range(count)]
    meetings = rendezvous([local_rank for _, local_rank in ranks])
    if check.resident:
        return run(nodes[0], request, meetings[0])
    pipes = [in_fork(plugins, request, meeting) for (plugins, _), meeting in zip(ranks, meetings, strict=True)]
    if meetings[0].listen_fd is not None:
        os.close(meetings[0].listen_fd)
    answers = [said_in(pipe) for pipe in pipes]
    return answers if check.scope is Scope.GROUP else answers[0]


def said_in(pipe: Any) -> Any:
    with pipe:
        return json.loads(pipe.read() or "null")


def inventory(plugins: Plugins) -> Inventory:
    found = (given.value for given in plugins.contribute("muster_inventory") if given.value is not None)
    return next(found, Inventory())


def rendezvous(local_ranks: list[int]) -> list[Rendezvous]:
    listener = socket.create_server(("127.0.0.1", 0))
    port, descriptor = listener.getsockname()[1], listener.detach()
    return [
        Rendezvous(
            rank=rank,
            local_rank=local_rank,
            world_size=len(local_ranks),
            master_addr="127.0.0.1",
            master_port=port,
            listen_fd=descriptor if rank == 0 else None,
        )
        for rank, local_rank in enumerate(local_ranks)
    ]


def in_fork(plugins: Plugins, request: dict[str, Any], meeting: Rendezvous) -> Any:
    """A file from which the answer of the fork can be read."""
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        return os.fdopen(reading, encoding="utf-8")
    os.write(writing, json.dumps(run(plugins, request, meeting)).encode())
    os._exit(0)


def run(plugins: Plugins, request: dict[str, Any], meeting: Rendezvous) -> Any:
    check = collect_checks(plugins)[request["do"]]
    settings = plugins.config.settings
    given = tuple(Device.model_validate(device) for device in request.get("devices", ()))
    context = BareContext(
        node=settings.node,
        devices=given or inventory(plugins).devices,
        expected_gpus=settings.expected_gpus,
        machine_type=settings.agent.machine_type,
        scratch=Path(tempfile.gettempdir()),
        meeting=meeting,
    )
    if "spare_bytes" in request:
        limit_memory(request["spare_bytes"])
    if request.get("strays") == meeting.rank:
        stray()
    if meeting.rank in request.get("without_libuv", []):
        lack_libuv()
    disturb(meeting.rank, **{kind: request[kind] for kind in ("corrupt", "late") if kind in request})
    try:
        plugins.contribute("muster_prepare_run", check=check, context=context)
        measurement = check.measure(check.params(**request.get("params", {})), context)
        findings = check.judge(measurement, applicable(shipped(), check.name, measurement.facts))
    except Skip as reason:
        return {"skipped": str(reason)}
    except Exception:
        return {"raised": traceback.format_exc()}
    return {
        "metrics": measurement.model_dump(mode="json")["metrics"],
        "facts": measurement.facts,
        "findings": [finding.model_dump(mode="json") for finding in findings],
    }


def disturb(rank: int, corrupt: dict[str, Any] | None = None, late: dict[str, Any] | None = None) -> None:
    """Puts a fault of one rank under the collectives: an element of what it sends is flipped, or it is late."""
    if (corrupt or late or {}).get("rank") != rank:
        return
    from muster_plugins.checks.collective.operations import PreparedCollective  # noqa: PLC0415  only some tests need it

    refill = PreparedCollective.refill

    def disturbed(exercise: PreparedCollective) -> None:
        refill(exercise)
        if corrupt:
            exercise.sent.view(-1)[0] += 1
        if late:
            time.sleep(late["seconds"])

    setattr(PreparedCollective, "refill", disturbed)  # noqa: B010  in this process only, which ends with the run


def stray() -> None:
    """Has this rank begin to train in parallel with one weight that is not the others'."""
    import torch  # noqa: PLC0415  only some tests need it

    parallel = torch.nn.parallel.DistributedDataParallel

    def strayed(*args: Any, **kwargs: Any) -> Any:
        network = parallel(*args, **kwargs)
        next(network.parameters()).data.view(-1)[0] += 1
        return network

    torch.nn.parallel.DistributedDataParallel = strayed  # type: ignore[assignment,misc]  # this process ends with the run


def lack_libuv() -> None:
    """Has this rank's torch refuse libuv, as one does that is built without it, such as Debian's."""
    import torch.distributed as dist  # noqa: PLC0415  only some tests need it

    real = dist.TCPStore  # type: ignore[attr-defined]  # torch leaves it out of __all__

    def store(*args: Any, **options: Any) -> Any:
        if options.get("use_libuv", True):
            raise RuntimeError("use_libuv was requested but PyTorch was build without libuv support")
        return real(*args, **options)

    setattr(dist, "TCPStore", store)  # noqa: B010  in this process only, which ends with the run


def limit_memory(spare_bytes: int) -> None:
    """Leaves this process that much more memory than it has, as an agent limits its runs."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    has = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (has + spare_bytes, has + spare_bytes))


def serve(connection: socket.socket) -> None:
    """Says which process this is, and answers until the test hangs up."""
    with connection, connection.makefile("rw", encoding="utf-8") as lines:
        print(os.getpid(), file=lines, flush=True)
        for line in lines:
            print(json.dumps(answer(json.loads(line))), file=lines, flush=True)


def reap(options: int) -> None:
    """Waits for children that have ended, so that their processor time counts."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def main() -> None:
    if "--torch" in sys.argv:
        import torch._dynamo  # noqa: PLC0415  see below; training in parallel needs it
        import torch.distributed  # noqa: F401, PLC0415  only some tests need it
    load(Config(Settings()))
    requests = socket.socket(fileno=int(sys.argv[1]))
    while True:
        environment, fds, _, _ = socket.recv_fds(requests, 1 << 16, 1)
        if not environment:
            break  # the tests have ended
        reap(os.WNOHANG)
        if not os.fork():
            requests.close()
            os.environ.update(json.loads(environment))
            serve(socket.socket(fileno=fds[0]))
            os._exit(0)
        os.close(fds[0])
    reap(0)


if __name__ == "__main__":
    main()
