"""What errors say to people."""

import errno
import socket
import ssl

from tests.cases import cases

from muster_plugins.shared.error_words import in_words


def caused(error: Exception, by: Exception) -> Exception:
    error.__cause__ = by
    return error


@cases(
    ("error", "said"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 443)"), "Connection refused"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (FileNotFoundError(errno.ENOENT, "gone", "/run/token"), "/run/token: No such file or directory"),
        (ssl.SSLError(1, "[SSL] record layer failure"), "[SSL] record layer failure"),
        (caused(RuntimeError("Cannot connect"), OSError(errno.ECONNRESET, "x")), "Connection reset by peer"),
        (caused(RuntimeError("Cannot connect"), ValueError("x")), "Cannot connect"),
        (OSError("Multiple exceptions"), "Multiple exceptions"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors_in_words(error, said):
    """Without numbers and names of classes: the system's words where it has any, beneath those of a client."""
    assert in_words(error) == said
