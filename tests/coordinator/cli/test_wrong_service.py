"""Commands that are pointed at a service that is no coordinator, although it answers in JSON."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from muster.errors import EX_UNAVAILABLE

REASON = ("--reason", "x")


class OtherService(BaseHTTPRequestHandler):
    """Answers every request with the same JSON."""

    body = b'{"status": "ok", "items": [{"id": 1}], "next_cursor": null}'

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def other_service(live):
    """Its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), OtherService) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "command",
    [
        ("baseline", "list"),
        ("baseline", "reset", "b1"),
        ("node", "list"),
        ("node", "show", "n1"),
        ("node", "story", "n1"),
        ("node", "history", "n1", "--metric", "tflops"),
        ("node", "forget", "n1", *REASON),
        ("quarantine", "list"),
        ("quarantine", "budget"),
        ("quarantine", "history"),
        ("quarantine", "hold", "n1", *REASON),
        ("quarantine", "unfreeze", *REASON),
        ("reference", "list"),
        ("reference", "explain", "r1"),
        ("reference", "set", "gemm", "tflops", "--fail-below", "1", "--source", "x"),
        ("sweep", "list"),
        ("sweep", "show", "s1"),
        ("sweep", "show", "s1", "--why", "n1"),
        ("sweep", "start", "--check", "gemm"),
        ("sweep", "start", "--check", "gemm", "--dry-run"),
        ("sweep", "abort", "s1"),
    ],
    ids=" ".join,
)
def test_what_answers_is_no_coordinator(muster, other_service, command):
    """One line says so, with the URL; the exit code is that of a coordinator that cannot be reached."""
    refused = muster(*command, "--url", other_service)
    assert (refused.returncode, refused.stdout) == (EX_UNAVAILABLE, "")
    assert refused.stderr.startswith(f"muster: no muster coordinator of this version at {other_service} (")
    assert len(refused.stderr.splitlines()) == 1


def test_https_to_a_service_without_tls_says_so(other_service, muster):
    """It runs, so the advice is not to start it."""
    done = muster("node", "list", "--url", other_service.replace("http:", "https:"))
    assert (done.returncode, done.stdout) == (EX_UNAVAILABLE, "")
    assert "write http:// if it speaks no TLS, or name the file with the authority" in done.stderr
    assert "start it" not in done.stderr
