"""Text from nodes does not control the terminal, whichever command prints it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

BAD = "\x1b[2J\x9b1m\u202e\u200b\x07bad\r\nn9  HEALTHY  IN_SERVICE"

DEVICE = {"index": 0, "uuid": BAD, "model": BAD}
FINDING = {"code": "gemm.slow", "summary": BAD, "severity": "ERROR", "check": BAD, "run": "r", "since": 1.0}
NODE = {
    "name": f"n1{BAD}",
    "health": "FAILED",
    "service": "CORDONED",
    "lost": False,
    "last_seen": "1970-01-01T00:00:01.000Z",
    "devices": [DEVICE],
    "findings": [FINDING],
    "reasons": [BAD],
    "topology": {"rack": BAD},
    "checks": {BAD: "FAIL"},
}
CASE = {"node": "n1", "since": 1.0, "rounds": 1, "held_because": BAD, "spared": [BAD]}
FLEET = {"name": "f", "nodes": 1, "health": {}, "service": {}, "lost": [], "findings": []}
STEP = {"id": "s", "node": "n1", "at": 1.0, "kind": "health", "text": BAD}
POINT = {"at": 1.0, "check": "gemm", "verdicts": {"FAIL": 1}, "values": {BAD: 1.0}}


class Liar(BaseHTTPRequestHandler):
    """A coordinator that passes on any text."""

    def do_GET(self):
        lists = {"/nodes": NODE, "/story": STEP, "/history": POINT}
        path = self.path.partition("?")[0]
        listed = next((item for end, item in lists.items() if path.endswith(end)), None)
        refusal = {"type": "about:blank", "title": "Not Found", "status": 404, "detail": f"unknown {BAD}"}
        single = {"/fleet": FLEET, "/n1": NODE | {"name": "n1"}, "/case": CASE}
        found = next((item for end, item in single.items() if path.endswith(end)), refusal)
        answer = {"items": [listed], "next_cursor": None} if listed else found
        self.send_response(200 if answer is not refusal else 404)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def liar():
    with ThreadingHTTPServer(("127.0.0.1", 0), Liar) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("command", ["list", "show n1", "story n1", "history n1 --metric m"])
def test_commands_print_it_without_control_characters(liar, muster, command):
    """Also in error messages. JSON output is ASCII and contains every character as an escape."""
    done = muster("node", *command.split(), "--url", liar)
    shown = done.stdout + done.stderr
    assert "bad" in shown
    assert all(line.isprintable() for line in shown.split("\n"))
    assert not any(line.startswith("n9") for line in shown.split("\n"))
    data = muster("node", *command.split(), "--url", liar, "--json").stdout
    assert data.isascii()
    assert data == "" or json.dumps(BAD)[1:-1] in data
