"""What a daemon on this host answers."""

import http.server
import threading
from contextlib import contextmanager

import pytest

from muster.doctor.process import answer_of

pytestmark = pytest.mark.usefixtures("live")


@contextmanager
def answering(status, body):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "body", "answer"),
    [
        (200, b'{"status": "ok"}', {"status": "ok"}),
        (503, b'{"detail": "away"}', {"detail": "away"}),
        (200, b"<html>", None),
        (200, b"[1]", None),
    ],
)
def test_an_object_is_an_answer(status, body, answer):
    """Also with an error; anything else is something else's. A daemon that listens everywhere is asked on loopback."""
    with answering(status, body) as port:
        assert answer_of(f"127.0.0.1:{port}", "/readyz") == answer
        assert answer_of(f"0.0.0.0:{port}", "/readyz") == answer


def test_nobody_answers():
    """Nothing listens there."""
    assert answer_of("127.0.0.1:1", "/readyz") is None
